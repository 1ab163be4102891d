"""The learning page: the paper in six steps that react, on the learner's own sentence and a real model."""
