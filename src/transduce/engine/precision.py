"""Chooses the precision for translation by the network, the processor and what is installed, never by a timing.

So the same model on the same machine gives the same translations after every restart. `auto` is int8 where the C++ core
was built and implements the network; else torch translates, in bf16 where the processor multiplies it, else in float32.
"""

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Literal

from transduce.core import NO_CORE, has_core
from transduce.engine.frozen_network import obstacle
from transduce.errors import ConfigError
from transduce.machine import fastest_precision, processor_flags
from transduce.networks.config import NetworkConfig

Precision = Literal["int8", "bf16", "float32"]


def choose_precision(wanted: Precision | Literal["auto"], configs: Sequence[NetworkConfig]) -> Precision:
    """Return the precision in which networks of these sizes translate; raise ConfigError if `wanted` is impossible."""
    faults = [fault for fault in map(obstacle, configs) if fault is not None]
    if wanted == "int8":
        if faults:
            raise ConfigError(f"There is no int8 form of {faults[0]}. Choose another precision, or auto.")
        if not has_core():
            raise ConfigError(f"int8 needs the C++ core: {NO_CORE}, or choose auto.")
        return "int8"
    if wanted != "auto":
        return wanted
    if not faults and has_core():
        return "int8"
    if not faults and find_spec("torch") is None:
        raise ConfigError(
            f"Nothing here can translate: {NO_CORE}; or type: pip install 'transduce[train]', and torch translates."
        )
    return fastest_precision(processor_flags())


def can_be_frozen(precision: Precision, configs: Sequence[NetworkConfig]) -> bool:
    """Return whether the core translates with all of these networks in this precision; otherwise torch does."""
    return precision != "bf16" and has_core() and all(obstacle(config) is None for config in configs)
