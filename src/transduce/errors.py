"""Errors that a user can fix.

Each is a `TransduceError` with a message that says what is wrong, where, and what to do next. The command line prints
the message without a traceback and exits with 2; the server answers 4xx. Any other exception is a bug in transduce.
"""


def shown(text: str) -> str:
    """Return a text of unknown origin for a terminal: control codes as their escapes, not as commands to it."""
    return "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in text)


class TransduceError(Exception):
    """An error that the user can fix; the message says how, and may quote a file of unknown origin."""

    def __init__(self, message: str, *details: str) -> None:
        """`details` are lines of their own below the message."""
        super().__init__("\n  ".join(map(shown, (message, *details))))


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
