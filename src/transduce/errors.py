"""Errors that a user can cause and cure.

Everything raised on purpose for a user is a `TransduceError`: one line that says what is wrong, where, and
what to do next. The command line prints it without a traceback and exits with 2; the server answers 4xx.
Any other exception is a bug of ours.
"""


class TransduceError(Exception):
    """Something the user can put right; its message says how."""


class ConfigError(TransduceError):
    """A setting is unknown, missing or impossible. Lists every fault found, each with its dotted key."""


class DataError(TransduceError):
    """A corpus or an input file cannot be read as what it claims to be."""


class ModelError(TransduceError):
    """A model directory is damaged, foreign, or newer than this version."""


class RunError(TransduceError):
    """A run directory cannot be used as asked: locked, damaged, full disk, or a different experiment."""


class TrainingError(TransduceError):
    """Training cannot go on: memory ran out or the numbers stopped being finite."""
