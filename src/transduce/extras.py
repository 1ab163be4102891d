"""Packages that only some commands need, and the extra of `pip install` that brings them."""

from collections.abc import Sequence
from importlib.util import find_spec

from transduce.errors import ConfigError

LEARNING = ("torch", "tensorboardX", "safetensors")
SERVING = ("fastapi", "multipart", "prometheus_client", "uvicorn")


def require(packages: Sequence[str], *, purpose: str, extra: str) -> None:
    """Raise an error that says what to install if a package is missing."""
    missing = [name for name in packages if find_spec(name) is None]
    if missing:
        raise ConfigError(f"{purpose} needs {', '.join(missing)}, not installed here: pip install 'transduce[{extra}]'")


def require_torch(purpose: str) -> None:
    """Raise an error that says what to install if torch is missing."""
    require(("torch",), purpose=purpose, extra="train")
