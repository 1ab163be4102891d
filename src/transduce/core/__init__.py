"""The C++ core (`core/` in the repository): an extension module, built when the package is installed.

It is missing where there was no compiler; then `has_core` says so, and torch translates.
"""

try:
    from transduce.core import _core as core
except ImportError:
    core = None  # type: ignore[assignment]

NO_CORE = (
    "the C++ core was not built when transduce was installed, for want of a C++ compiler. Install a compiler (on "
    "Debian and Ubuntu: apt-get install g++) and install transduce again"
)


def has_core() -> bool:
    """Return whether the core was built."""
    return core is not None


def instructions() -> list[str]:
    """Return the instruction sets of this processor that the core can use, the fastest first."""
    return core.available_instructions() if has_core() else []


__all__ = ["NO_CORE", "core", "has_core", "instructions"]
