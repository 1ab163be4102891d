"""Code that all numba kernels share: a table of kernels, a float's bits, and an exponential that vectorises.

It is imported only when kernels are compiled (`machine_code.py`); calling them needs no numba.
"""

from typing import Any

import numpy as np
from numba import cfunc, njit, types
from numba.extending import intrinsic

ZERO, HALF, ONE = np.float32(0.0), np.float32(0.5), np.float32(1.0)
LOG2_E, LN2_HIGH, LN2_LOW = np.float32(1.44269504), np.float32(0.693359375), np.float32(-2.12194440e-4)
EXP_5, EXP_4, EXP_3 = np.float32(1.9875691500e-4), np.float32(1.3981999507e-3), np.float32(8.3334519073e-3)
EXP_2, EXP_1, EXP_0 = np.float32(4.1665795894e-2), np.float32(1.6666665459e-1), np.float32(5.0000001201e-1)
LEAST_EXPONENT = np.float32(-87.0)
SIZE = types.int64

_OPTIONS: dict[str, Any] = {"fastmath": {"reassoc", "contract", "nsz", "arcp"}, "error_model": "numpy"}
inlined = njit(inline="always", **_OPTIONS)


class Entries(dict[str, Any]):
    """A module's kernels by name, each compiled for pointers and sizes."""

    def entry(self, *kinds: Any) -> Any:
        """Return a decorator that compiles a function for arguments of these kinds and stores it."""

        def keep(function: Any) -> Any:
            self[function.__name__] = cfunc(types.void(*kinds), **_OPTIONS)(function)
            return function

        return keep


@intrinsic
def float_of_bits(typing_context: Any, bits: Any) -> Any:
    """Return the float32 whose bits an int32 has."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], context.get_value_type(types.float32))

    return types.float32(types.int32), generate


@intrinsic
def bits_of_float(typing_context: Any, value: Any) -> Any:
    """Return the bits of a float32 as an int32."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], context.get_value_type(types.int32))

    return types.int32(types.float32), generate


@inlined
def exp(x):
    """Return e^x for x <= 0, in arithmetic that vectorises; within 2 units of the last place of float32."""
    x = max(x, LEAST_EXPONENT)
    n = np.floor(x * LOG2_E + HALF)
    f = x - n * LN2_HIGH - n * LN2_LOW
    p = ((((EXP_5 * f + EXP_4) * f + EXP_3) * f + EXP_2) * f + EXP_1) * f + EXP_0
    return (p * f * f + f + ONE) * float_of_bits(np.int32((np.int32(n) + np.int32(127)) << np.int32(23)))
