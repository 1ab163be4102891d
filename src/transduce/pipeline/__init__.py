"""From an experiment to a model: plan, prepare, train, validate, average, card, report."""
