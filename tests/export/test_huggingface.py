"""The Marian directory: another network's arithmetic, written out here, gives our logits; transformers loads it."""

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from tests.export.marian import Marian
from torch import Tensor

from transduce.errors import ModelError
from transduce.export.huggingface import export_huggingface
from transduce.model.config import ModelConfig
from transduce.model.transformer import Transformer
from transduce.model_directory import Description, Languages, ModelDirectory, load_model, save_model
from transduce.special_tokens import OWN_SPECIAL_TOKENS
from transduce.text.bpe_tokenizer import BpeTokenizer
from transduce.text.tokenizer_pair import TokenizerPair

EOS = OWN_SPECIAL_TOKENS.end

LINES = ["the dog runs.", "a cat sleeps here", "der Hund läuft.", "eine Katze schläft hier", "zwei große Bären"] * 3
SENTENCES = [" ".join(LINES[(7 * n + k) % 5] for k in range(1 + n % 3)) for n in range(100)]


def make(folder: Path, **options: object) -> ModelDirectory:
    tokenizer = BpeTokenizer.learn(LINES, vocabulary_size=400)
    sizes = {"d_model": 22, "heads": 11, "d_ff": 13, "encoder_layers": 2, "decoder_layers": 3, "dropout": 0.1}
    config = ModelConfig.model_validate({"vocabulary_size": tokenizer.vocabulary_size, **sizes, **options})
    torch.manual_seed(5)
    model = Transformer(config)
    for parameter in model.parameters():  # norms start as the identity, which would hide a wrong order
        if parameter.dim() == 1:
            torch.nn.init.normal_(parameter, mean=1.0, std=0.3)
    description = Description(architecture=config, languages=Languages(source="en", target="de"), longest_sentence=99)
    save_model(folder, description, dict(model.named_parameters()), tokenizers=TokenizerPair.shared(tokenizer), card="")
    return load_model(folder)


def our_logits(model: ModelDirectory, source_BS: Tensor, target_BT: Tensor) -> Tensor:
    network = model.network()
    with torch.no_grad():
        return network.output.logits(network(source_BS, target_BT))


@pytest.mark.parametrize("options", [{}, {"attention_bias": True}, {"norm": "pre"}])
def test_the_exported_network_gives_our_logits(tmp_path: Path, options: dict[str, object]) -> None:
    model = make(tmp_path / "model", **options)
    export_huggingface(model, tmp_path / "marian")
    with torch.no_grad():
        for source, target in pairwise(SENTENCES[:21]):
            source_S, target_T = (
                torch.tensor([*model.tokenizers.target.encode(text), EOS]) for text in (source, target)
            )
            ours = our_logits(model, source_S[None], target_T[None])[0]
            equal = Marian(tmp_path / "marian", epsilon=1e-6).logits(source_S, target_T)
            torch.testing.assert_close(equal, ours, atol=2e-5, rtol=1e-4)
            theirs = Marian(tmp_path / "marian", epsilon=1e-5).logits(source_S, target_T)
            assert not torch.equal(theirs, equal)
            torch.testing.assert_close(theirs, ours, atol=2e-3, rtol=1e-3)


def test_with_marians_own_options_nothing_differs(tmp_path: Path) -> None:
    options = {"norm_epsilon": 1e-5, "positions": "sinusoidal_halves", "activation": "silu", "output_bias": True}
    model = make(tmp_path / "model", **options, embedding_scale=1.0, attention_bias=True)
    export_huggingface(model, tmp_path / "marian")
    source_S, target_T = (torch.tensor([*model.tokenizers.target.encode(text), EOS]) for text in SENTENCES[:2])
    with torch.no_grad():
        theirs = Marian(tmp_path / "marian", epsilon=1e-5).logits(source_S, target_T)
    torch.testing.assert_close(theirs, our_logits(model, source_S[None], target_T[None])[0], atol=2e-5, rtol=1e-4)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_transformers_loads_it_and_gives_our_logits_on_100_sentences(tmp_path: Path, norm: str) -> None:
    transformers = pytest.importorskip("transformers", reason="transformers is not installed; it is no dependency")
    model = make(tmp_path / "model", norm=norm)
    export_huggingface(model, tmp_path / "marian")
    network, report = transformers.AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "marian", output_loading_info=True)
    assert not report["unexpected_keys"]
    assert all("embed_positions" in name for name in report["missing_keys"])
    tokenizer = transformers.MarianTokenizer.from_pretrained(tmp_path / "marian")
    network.eval()
    worst = {1e-5: 0.0, 1e-6: 0.0}
    for epsilon in worst:
        for module in network.modules():
            if isinstance(module, torch.nn.LayerNorm):
                assert epsilon != 1e-5 or module.eps == 1e-5
                module.eps = epsilon
        for source, target in zip(SENTENCES, SENTENCES[1:] + SENTENCES[:1], strict=True):
            source_S, target_T = (
                torch.tensor([*model.tokenizers.target.encode(text), EOS]) for text in (source, target)
            )
            assert tokenizer(source)["input_ids"] == source_S.tolist()
            with torch.no_grad():
                start = torch.tensor([network.config.decoder_start_token_id])
                theirs = network(
                    input_ids=source_S[None], decoder_input_ids=torch.cat([start, target_T[:-1]])[None]
                ).logits
            difference = (theirs - our_logits(model, source_S[None], target_T[None])).abs().max().item()
            worst[epsilon] = max(worst[epsilon], difference)
    print(f"largest difference of a logit: {worst}")
    assert worst[1e-6] < 2e-5
    assert worst[1e-5] < 2e-3
    generated = network.generate(**tokenizer(SENTENCES[:3], return_tensors="pt", padding=True), max_length=9)
    assert all("<" not in text for text in tokenizer.batch_decode(generated, skip_special_tokens=True))


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"positions": "learned"}, r'positions = "learned" \(only "sinusoidal" or "sinusoidal_halves"\)'),
        ({"positions": "concatenated"}, 'positions = "concatenated"'),
        ({"norm": "pre", "final_norm": False}, "final_norm = false"),
        ({"tied": "none"}, 'tied = "none"'),
        ({"d_k": 3}, r"d_k = 3 and d_v = 2 \(only 2\)"),
    ],
)
def test_what_marian_cannot_do_is_refused_by_name(tmp_path: Path, options: dict[str, object], what: str) -> None:
    with pytest.raises(ModelError, match=what):
        export_huggingface(make(tmp_path / "model", **options), tmp_path / "marian")
    assert not (tmp_path / "marian").exists()


@pytest.mark.parametrize(("decoding", "beam"), [({}, 4), ({"beam": 7}, 7), ({"beam": 40, "consensus": True}, 4)])
def test_the_beam_is_the_models_own_unless_a_consensus_wanted_it(
    tmp_path: Path, decoding: dict[str, object], beam: int
) -> None:
    model = make(tmp_path / "model")
    description = model.description.model_copy(update={"decoding": decoding})
    export_huggingface(replace(model, description=description), tmp_path / "exported")
    generation = json.loads((tmp_path / "exported" / "generation_config.json").read_text(encoding="utf-8"))
    assert generation["num_beams"] == beam


def test_an_existing_folder_is_not_overwritten(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="exists already"):
        export_huggingface(make(tmp_path / "model"), tmp_path / "model")
