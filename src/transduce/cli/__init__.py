"""The command line: each command reads its arguments, calls the library, and reports.

Only this room prints. Commands import the library inside their bodies, so that `--help` answers without torch.
"""

import sys

from transduce.cli.application import app
from transduce.errors import TransduceError


def main() -> None:
    """Run a command; what a user can cure is one line on stderr and exit code 2, never a traceback."""
    try:
        app()
    except TransduceError as error:
        sys.stderr.write(f"transduce: {error}\n")
        sys.exit(2)
    except BrokenPipeError:
        # The reader has gone (`| head`). Point stdout at nothing, so that Python's exit does not complain as well.
        sys.stdout = None
        sys.exit(141)
