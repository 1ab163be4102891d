"""The precision that translates depends on the network, the processor and whether the C++ core was built."""

import pytest

import transduce.core
from transduce.engine import can_be_frozen, choose_precision, precision
from transduce.errors import ConfigError
from transduce.model import ModelConfig

BASE = ModelConfig()
ADDITIVE = BASE.model_copy(update={"scores": "additive"})


def on(monkeypatch: pytest.MonkeyPatch, *flags: str, has_core: bool = True) -> None:
    monkeypatch.setattr(precision, "processor_flags", lambda: frozenset(flags))
    monkeypatch.setattr(transduce.core, "core", object() if has_core else None)


def test_auto_takes_int8_where_the_core_was_built(monkeypatch: pytest.MonkeyPatch) -> None:
    on(monkeypatch, "avx512_bf16")
    assert choose_precision("auto", [BASE]) == "int8"
    assert choose_precision("float32", [BASE]) == "float32"
    assert choose_precision("bf16", [BASE]) == "bf16"


@pytest.mark.parametrize(("flags", "chosen"), [(["avx512_bf16"], "bf16"), ([], "float32")])
def test_auto_falls_back_to_torch(monkeypatch: pytest.MonkeyPatch, flags: list[str], chosen: str) -> None:
    on(monkeypatch, *flags, has_core=False)
    assert choose_precision("auto", [BASE]) == chosen
    on(monkeypatch, *flags)
    assert choose_precision("auto", [BASE, ADDITIVE]) == chosen


def test_without_core_and_torch_the_error_names_both_cures(monkeypatch: pytest.MonkeyPatch) -> None:
    on(monkeypatch, "avx512_bf16", has_core=False)
    monkeypatch.setattr(precision, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"Install a compiler .* or type: pip install 'transduce\[train\]'"):
        choose_precision("auto", [BASE])


def test_int8_by_name_needs_the_core_and_a_network_that_it_implements(monkeypatch: pytest.MonkeyPatch) -> None:
    on(monkeypatch, has_core=False)
    with pytest.raises(ConfigError, match=r"int8 needs the C\+\+ core: .* Install a compiler"):
        choose_precision("int8", [BASE])
    on(monkeypatch)
    assert choose_precision("int8", [BASE]) == "int8"
    with pytest.raises(ConfigError, match='no int8 form of scores = "additive"'):
        choose_precision("int8", [BASE, ADDITIVE])


def test_the_core_translates_in_int8_and_float32_what_it_implements(monkeypatch: pytest.MonkeyPatch) -> None:
    on(monkeypatch)
    assert [can_be_frozen(one, [BASE]) for one in ("int8", "float32", "bf16")] == [True, True, False]
    assert not can_be_frozen("float32", [BASE, ADDITIVE])
    on(monkeypatch, has_core=False)
    assert not can_be_frozen("float32", [BASE])
