"""What translates: decided by the processor and by what is installed; what cannot be is refused with the reason."""

import sys

import pytest

from transduce.engine import plain_kernels, precision
from transduce.engine.backend import Backend, fused_backend
from transduce.engine.precision import choose_precision
from transduce.engine.products import Product
from transduce.errors import ConfigError
from transduce.model import ModelConfig

BASE = ModelConfig()


def on(monkeypatch: pytest.MonkeyPatch, *flags: str, has_torch: bool = True, has_fused: bool = True) -> None:
    backend = Backend("any", plain_kernels, Product, 127)
    monkeypatch.setattr(precision, "processor_flags", lambda: frozenset(flags))
    monkeypatch.setattr(precision, "fastest_backend", lambda: backend if has_torch or has_fused else None)
    monkeypatch.setattr(precision, "fused_backend", lambda: backend if has_fused else None)


def test_auto_takes_int8_where_the_processor_multiplies_it(monkeypatch: pytest.MonkeyPatch) -> None:
    on(monkeypatch, "avx512_vnni", "avx512_bf16")
    assert choose_precision("auto", [BASE]) == "int8"
    assert choose_precision("float32", [BASE]) == "float32"
    assert choose_precision("bf16", [BASE]) == "bf16"


@pytest.mark.parametrize(
    ("flags", "has_torch", "chosen"),
    [(["avx512_bf16"], True, "bf16"), (["avx512_bf16"], False, "bf16"), ([], True, "float32")],
)
def test_auto_falls_back(monkeypatch: pytest.MonkeyPatch, flags: list[str], has_torch: bool, chosen: str) -> None:
    on(monkeypatch, *flags, has_torch=has_torch, has_fused=False)
    assert choose_precision("auto", [BASE]) == chosen


def test_int8_by_name_needs_an_exact_product_and_a_network_that_has_the_form(monkeypatch: pytest.MonkeyPatch) -> None:
    on(monkeypatch, has_torch=False, has_fused=False)
    with pytest.raises(ConfigError, match="no exact int8 product"):
        choose_precision("int8", [BASE])
    on(monkeypatch, has_fused=False)
    assert choose_precision("int8", [BASE]) == "int8"
    additive = BASE.model_copy(update={"scores": "additive"})
    with pytest.raises(ConfigError, match='no int8 form of scores = "additive"'):
        choose_precision("int8", [BASE, additive])
    on(monkeypatch, "avx512_vnni")
    assert choose_precision("auto", [BASE, additive]) == "float32"


def test_without_the_instruction_or_numba_nothing_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    from transduce.engine import backend

    monkeypatch.setattr(backend, "processor_flags", lambda: frozenset({"avx2", "avx_vnni"}))
    assert fused_backend() is None
    monkeypatch.setattr(backend, "processor_flags", lambda: frozenset({"avx512_vnni"}))
    monkeypatch.setitem(sys.modules, "numba", None)
    assert fused_backend() is None
