"""Work on a text of any size, part by part: by one process, by the tasks of an array, or by a Ray cluster."""
