"""A language model as a translator loads it: generation, likelihood of text, attention."""

import math
from pathlib import Path

import pytest
import torch

import transduce
from transduce.decoding.generation import GenerationConfig, encode_text, generate_tokens
from transduce.errors import ConfigError, DataError, ModelError
from transduce.model.language_model import LanguageModel
from transduce.model.language_model_config import LanguageModelConfig
from transduce.model_directory import Description, save_model
from transduce.text.character_tokenizer import CharacterTokenizer
from transduce.text.tokenizer_pair import TokenizerPair
from transduce.translator.generating import windows

TEXT = "to be or not to be\nthat is the question"
TOKENIZER = CharacterTokenizer.learn(TEXT.split("\n"), vocabulary_size=400)


def write_model(folder: Path, **training: object) -> tuple[Path, LanguageModel]:
    torch.manual_seed(4)
    config = LanguageModelConfig(
        vocabulary_size=TOKENIZER.vocabulary_size, layers=2, heads=2, d_model=16, learned_positions=24, dropout=0.0
    )
    network = LanguageModel(config).eval()
    for parameter in network.parameters():
        parameter.data = torch.randn_like(parameter) * 0.5
    described = Description(architecture=config, longest_sentence=24, training=training)
    tokenizers = TokenizerPair.shared(TOKENIZER)
    save_model(folder, described, dict(network.named_parameters()), tokenizers=tokenizers, card="x")
    return folder, network


def test_greedy_text_is_that_of_whole_passes(tmp_path: Path) -> None:
    folder, network = write_model(tmp_path / "model")
    model = transduce.load(folder, precision="float32", threads=1)
    ids, written = encode_text(TOKENIZER, "to be"), list[int]()
    for _ in range(12):
        with torch.no_grad():
            logits_V = network.output.logits(network(torch.tensor([ids[:1]]), torch.tensor([[*ids[1:], 4]])))[0, -1]
        logits_V[list(TOKENIZER.special.never_generated)] = -math.inf
        written.append(int(logits_V.argmax()))
        ids.append(written[-1])
    asked = GenerationConfig(tokens=12, temperature=0)
    assert list(generate_tokens(model.stepper, ids[:-12], asked)) == written


def test_parts_join_to_the_whole_and_the_context_may_overflow(tmp_path: Path) -> None:
    model = transduce.load(write_model(tmp_path / "model")[0], precision="float32", threads=1)
    parts = list(model.stream("to be", tokens=90, seed=3))
    assert len(parts) > 1
    assert "".join(parts) == model.generate("to be", tokens=90, seed=3) != model.generate("to be", tokens=90, seed=4)


def test_a_text_ends_where_its_unit_does(tmp_path: Path) -> None:
    whole = transduce.load(write_model(tmp_path / "stream", unit="stream")[0], precision="float32", threads=1)
    line = transduce.load(write_model(tmp_path / "line", unit="line")[0], precision="float32", threads=1)
    texts = [whole.generate("to", tokens=200, seed=seed) for seed in range(8)]
    assert any("\n" in text for text in texts)
    assert [text.split("\n")[0] for text in texts] == [line.generate("to", tokens=200, seed=n) for n in range(8)]


@pytest.mark.parametrize("length", [2, 23, 24, 25, 61])
@pytest.mark.parametrize("longest", [None, 1, 2, 24])
def test_windows_predict_each_token_once_and_never_read_too_much(length: int, longest: int | None) -> None:
    ids = list(range(length))
    found = list(windows(ids, longest=longest))
    assert [token for _, labels in found for token in labels] == ids[1:]
    for before, labels in found:
        assert list(before) == ids[labels[0] - len(before) : labels[0]]
        assert longest is None or len(before) + len(labels) - 1 <= longest


def test_likelihood_is_that_of_one_pass_and_sums_to_one(tmp_path: Path) -> None:
    folder, network = write_model(tmp_path / "model")
    model, ids = transduce.load(folder, precision="float32", threads=1), encode_text(TOKENIZER, "to be\nor")
    with torch.no_grad():
        log_TV = network.output.logits(network(torch.tensor([ids[:1]]), torch.tensor([ids[1:]])))[0].log_softmax(-1)
    expected = log_TV.gather(1, torch.tensor(ids[1:])[:, None])[:, 0].tolist()
    assert model.text_likelihood("to be\nor").log_probabilities == pytest.approx(expected, abs=1e-5)
    assert len(model.text_likelihood(TEXT * 3).tokens) == len(encode_text(TOKENIZER, TEXT * 3)) - 1


def test_each_line_or_document_is_read_from_its_beginning_as_in_training(tmp_path: Path) -> None:
    for unit, parts in (("line", ["to be\n", "\n", "or not"]), ("document", ["to be\n\n", "or not"])):
        model = transduce.load(write_model(tmp_path / unit, unit=unit)[0], precision="float32", threads=1)
        apart = [value for part in parts for value in model.text_likelihood(part).log_probabilities]
        whole = model.text_likelihood("".join(parts))
        assert whole.log_probabilities == pytest.approx(apart, abs=1e-5)
        assert len(whole.tokens) == len("to be\n\nor not")
        alone = transduce.load(write_model(tmp_path / f"{unit} alone")[0], precision="float32", threads=1)
        assert alone.text_likelihood("or not").log_probabilities == pytest.approx(
            whole.log_probabilities[-6:], abs=1e-5
        )


def test_attention_is_one_triangle_for_each_head_without_a_source(tmp_path: Path) -> None:
    model = transduce.load(write_model(tmp_path / "model")[0], precision="float32", threads=1)
    report = model.attention("to be or not")
    (block,) = report.blocks.values()
    weights_LHQK = torch.as_tensor(block.weights_LHQK)
    assert weights_LHQK.shape == (2, 2, 13, 13)  # 12 characters and the end
    assert not weights_LHQK.triu(1).any()
    assert report.source.tokens == ()
    assert "to be or not" in report.to_html()
    with pytest.raises(DataError, match="at most 24"):
        model.attention("to be or not to be that is")


def test_each_kind_of_model_says_what_it_is_for(tmp_path: Path) -> None:
    model = transduce.load(write_model(tmp_path / "model")[0], precision="float32", threads=1)
    with pytest.raises(ModelError, match=r"does not translate\. Use it with generate"):
        model.translate("to be")
    with pytest.raises(ModelError, match=r"no language model\. Use it with translate"):
        transduce.load("en-de").generate("to be")
    with pytest.raises(ConfigError, match="beam draws nothing"):
        model.generate("to", beam=2, seed=1)
