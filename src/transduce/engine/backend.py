"""What the int8 network computes with: instructions of our own where they can be had, else torch's kernels.

Their products are equal bit for bit; what stands between the products is equal but for last bits of float32.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

from torch import Tensor

from transduce import machine_code
from transduce.compute import processor_flags
from transduce.engine import plain_kernels
from transduce.engine.fused_kernels import FusedKernels
from transduce.engine.products import FULL, Product, weight_limit
from transduce.engine.vnni_products import VnniProduct


class AnyProduct(Protocol):
    """A packed matrix."""

    @property
    def offset(self) -> Tensor:
        """What is added to its outputs, once they have their rows' scales."""

    @property
    def table(self) -> tuple[Tensor, Tensor] | None:
        """Of an embedding, its rows as `embed` reads them, and their scales."""

    def __call__(self, rows: Tensor) -> Tensor:
        """Return the product of quantised rows, without their scales and the offset."""

    def among(self, outputs: Tensor) -> "AnyProduct":
        """Return the product with some of an embedding's rows alone, equal bit for bit to those of the whole."""


@dataclass(frozen=True)
class Backend:
    """Products, what stands between them, and the largest weight with which the products are exact."""

    name: str
    kernels: Any
    product: Callable[..., AnyProduct]
    limit: int


def torch_backend() -> Backend | None:
    """Return torch's kernels, or None where they have no exact int8 product."""
    limit = weight_limit()
    return None if limit is None else Backend("torch", plain_kernels, Product, limit)


def fused_backend() -> Backend | None:
    """Return what numba compiles, or None without numba or AVX-512 VNNI."""
    # Asked for an instruction that the processor lacks, the compiler would end the process: ask the processor first.
    if "avx512_vnni" not in processor_flags() or not machine_code.can_be_made():
        return None
    return Backend("numba", FusedKernels(), VnniProduct, FULL)


@cache
def fastest_backend() -> Backend | None:
    """Return the fastest there is, or None."""
    return fused_backend() or torch_backend()
