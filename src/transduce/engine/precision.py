"""Which precision translates: asked of the processor and of what is installed, never timed.

So the same model on the same machine gives the same translations after every restart. `auto` is int8 where the
processor multiplies int8 natively (AVX-512 VNNI), numba is installed and the network has an int8 form; else bf16 where
the processor has that; else float32. Through torch's kernels alone int8 is right but slow: only if asked for.
"""

from collections.abc import Sequence
from typing import Literal

from transduce.compute import fastest_precision, processor_flags
from transduce.engine.backend import fastest_backend, fused_backend
from transduce.engine.int8_network import obstacle
from transduce.errors import ConfigError
from transduce.networks.network import NetworkConfig

Precision = Literal["int8", "bf16", "float32"]


def choose_precision(
    wanted: Precision | Literal["auto"], configs: Sequence[NetworkConfig], *, device: str = "cpu"
) -> Precision:
    """Return what networks of these sizes are to be translated in, or say why what was asked for cannot be."""
    faults = [fault for fault in map(obstacle, configs) if fault is not None]
    if device != "cpu":
        faults.append(f"the device {device!r}")
    if wanted == "int8":
        if faults:
            raise ConfigError(f"There is no int8 form of {faults[0]}. Choose another precision, or auto.")
        if fastest_backend() is None:
            raise ConfigError("torch has no exact int8 product on this processor. Choose another precision, or auto.")
        return "int8"
    if wanted != "auto":
        return wanted
    if not faults and fused_backend() is not None:
        return "int8"
    return fastest_precision(device, flags=processor_flags())
