"""The CTranslate2 directory: CTranslate2 itself gives our log-probabilities, for random and for trained weights."""

import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch

from transduce.errors import ModelError
from transduce.export.ctranslate2 import LONGEST, ctranslate2_log_probabilities, export_ctranslate2
from transduce.model.config import ModelConfig
from transduce.model.transformer import Transformer
from transduce.model_directory import Description, Languages, ModelDirectory, load_model, save_model
from transduce.networks.log_probabilities import token_log_probabilities
from transduce.networks.network import Network
from transduce.special_tokens import OWN_SPECIAL_TOKENS
from transduce.text.bpe_tokenizer import BpeTokenizer
from transduce.text.tokenizer import Tokenizer
from transduce.text.tokenizer_pair import TokenizerPair

EOS = OWN_SPECIAL_TOKENS.end

LINES = ["the dog runs.", "a cat sleeps here", "der Hund läuft.", "eine Katze schläft hier", "zwei große Bären"]
Pair = tuple[list[int], list[int]]


def make(folder: Path, *, steps: int = 0, **options: object) -> ModelDirectory:
    tokenizer = BpeTokenizer.learn(LINES * 3, vocabulary_size=400)
    sizes = {"d_model": 22, "heads": 11, "d_ff": 13, "encoder_layers": 2, "decoder_layers": 3, "dropout": 0.0}
    config = ModelConfig.model_validate({"vocabulary_size": tokenizer.vocabulary_size, **sizes, **options})
    torch.manual_seed(5)
    model = Transformer(config)
    for parameter in model.parameters():  # norms start as the identity, which would hide a wrong order
        if parameter.dim() == 1:
            torch.nn.init.normal_(parameter, mean=1.0, std=0.3)
    learn(model, pairs_of(tokenizer), steps=steps)
    description = Description(architecture=config, languages=Languages(source="en", target="de"), longest_sentence=99)
    save_model(folder, description, dict(model.named_parameters()), tokenizers=TokenizerPair.shared(tokenizer), card="")
    return load_model(folder)


def pairs_of(tokenizer: Tokenizer) -> list[Pair]:
    encoded = [[*tokenizer.encode(line), EOS] for line in LINES]
    return list(pairwise(encoded))


def learn(model: Transformer, pairs: list[Pair], *, steps: int) -> None:
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for step in range(steps):
        source, target = pairs[step % len(pairs)]
        loss = -sum_of_log_probabilities(model, source, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def sum_of_log_probabilities(model: Network, source: list[int], target: list[int]) -> torch.Tensor:
    target_BT = torch.tensor([target])
    hidden_BTD = model(torch.tensor([source]), target_BT)
    return token_log_probabilities(hidden_BTD, model.output, target_BT).sum()


def largest_difference(model: ModelDirectory, folder: Path, pairs: list[Pair], *, compute_type: str) -> float:
    ctranslate2 = pytest.importorskip("ctranslate2")
    pieces = ctranslate2_vocabulary(folder)
    theirs = ctranslate2_log_probabilities(
        ctranslate2.Translator(str(folder), compute_type=compute_type), pairs, pieces
    )
    network, largest = model.network(), 0.0
    for (source, target), found in zip(pairs, theirs, strict=True):
        ours = float(sum_of_log_probabilities(network, source, target).detach())
        largest = max(largest, abs(ours - sum(found)))
    return largest


def ctranslate2_vocabulary(folder: Path) -> list[str]:
    import json

    pieces: list[str] = json.loads((folder / "shared_vocabulary.json").read_text(encoding="utf-8"))
    return pieces


@pytest.fixture(autouse=True)
def _needs_ctranslate2() -> None:
    pytest.importorskip("ctranslate2", reason="ctranslate2 is not installed; it is an optional extra")


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"norm": "pre"},
        {"tied": "none"},
        {"tied": "decoder"},
        {"tied": "inputs"},
        {"attention_bias": True, "activation": "gelu"},
        {"positions": "concatenated"},
        {"positions": "learned", "learned_positions": 31},
        {"positions": "none"},
        {"scores": "unscaled"},
        {"d_k": 3, "d_v": 3},
    ],
)
def test_ctranslate2_gives_our_log_probabilities(tmp_path: Path, options: dict[str, Any]) -> None:
    model = make(tmp_path / "model", **options)
    assert export_ctranslate2(model, tmp_path / "there") < 1e-4
    pairs = pairs_of(model.tokenizers.target)
    assert largest_difference(model, tmp_path / "there", pairs, compute_type="float32") < 1e-4


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_trained_weights_give_our_log_probabilities_in_float32_and_nearly_in_int8(tmp_path: Path, norm: str) -> None:
    model = make(tmp_path / "model", steps=100, norm=norm)
    pairs = pairs_of(model.tokenizers.target)
    network = model.network()
    assert float(sum_of_log_probabilities(network, *pairs[0]).detach()) > -12.0  # it has learned; random gives -30
    export_ctranslate2(model, tmp_path / "float32")
    assert largest_difference(model, tmp_path / "float32", pairs, compute_type="float32") < 1e-4
    export_ctranslate2(model, tmp_path / "int8", weights="int8")
    assert 1e-4 < largest_difference(model, tmp_path / "int8", pairs, compute_type="int8") < 1.0
    assert (tmp_path / "int8" / "model.bin").stat().st_size < (tmp_path / "float32" / "model.bin").stat().st_size


def test_a_sentence_as_long_as_the_position_table_is_scored(tmp_path: Path) -> None:
    model = make(tmp_path / "model")
    export_ctranslate2(model, tmp_path / "there")
    generator = torch.Generator().manual_seed(1)
    long = [*torch.randint(EOS + 1, 300, (LONGEST - 1,), generator=generator).tolist(), EOS]
    assert LONGEST >= 1024
    assert largest_difference(model, tmp_path / "there", [(long, long)], compute_type="float32") < 0.05  # of 1,024


def test_weights_that_ctranslate2_reads_otherwise_are_not_left_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from transduce.export import ctranslate2 as module

    monkeypatch.setattr(module, "computed_positions", lambda config, length: torch.ones(length, config.d_model))
    with pytest.raises(ModelError, match="other log-probabilities than this model"):
        export_ctranslate2(make(tmp_path / "model"), tmp_path / "there")
    assert not (tmp_path / "there").exists()


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"scores": "additive"}, r'scores = "additive" \(only "scaled" or "unscaled"\)'),
        ({"d_k": 3}, r"d_k = 3 and d_v = 2 \(only equal ones\)"),
    ],
)
def test_what_ctranslate2_cannot_express_is_refused_with_the_reason(
    tmp_path: Path, options: dict[str, Any], what: str
) -> None:
    with pytest.raises(ModelError, match=what):
        export_ctranslate2(make(tmp_path / "model", **options), tmp_path / "there")
    assert not (tmp_path / "there").exists()


def test_without_ctranslate2_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    with pytest.raises(ModelError, match=r"pip install 'transduce\[ctranslate2\]'"):
        export_ctranslate2(make(tmp_path / "model"), tmp_path / "there")


def test_an_existing_folder_is_not_overwritten(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="exists already"):
        export_ctranslate2(make(tmp_path / "model"), tmp_path / "model")
