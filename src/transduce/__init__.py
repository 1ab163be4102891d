"""transduce: the system of "Attention Is All You Need" as software that people use.

Importing this package is cheap: torch is loaded only when a model is.
"""

from transduce.version import __version__

__all__ = ["__version__"]
