"""Errors that a user can fix.

Each is a `TransduceError` with a message that says what is wrong, where, and what to do next. The command line prints
the message without a traceback and exits with 2; the server answers 4xx. Any other exception is a bug in transduce.
"""


class TransduceError(Exception):
    """An error that the user can fix; the message says how."""


class ConfigError(TransduceError):
    """A setting is unknown, missing or invalid. The message lists every fault with its dotted key."""


class DataError(TransduceError):
    """A corpus or an input file cannot be read in the format or encoding that it claims to have."""


class ModelError(TransduceError):
    """A model directory is damaged, is not one of ours, or was written by a newer version."""


class RunError(TransduceError):
    """A run directory cannot be used: it is locked or damaged, the disk is full, or the experiment differs."""


class TrainingError(TransduceError):
    """Training cannot continue: memory ran out, or the loss is no longer finite."""
