"""Folders of GPT-2: the network written out here, and transformers with tokenizers, are the oracles."""

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

import transduce
from transduce.decoding.generation import encode_text
from transduce.errors import ModelError
from transduce.importing.formats import import_model
from transduce.model_directory import Languages, load_model
from transduce.tensor_file import write_tensors
from transduce.text.byte_tokenizer import BYTE_NAMES

PIECES = [*BYTE_NAMES.values(), "th", "Ġth", "Ġthe", "in", "<|endoftext|>"]
MERGES = ["t h", "Ġ th", "Ġth e", "i n"]
SIZES = {"n_embd": 12, "n_layer": 2, "n_head": 3, "n_positions": 40, "layer_norm_epsilon": 1e-3}
TEXTS = ["in the\nthin  ice, it's 12 o'clock", "naïve 中文 🙂", " the", "a  \n\n b"]


def random_weights(vocabulary_size: int, *, tied: bool = True) -> dict[str, np.ndarray]:
    random, d = np.random.default_rng(5), 12
    shapes: dict[str, tuple[int, ...]] = {"wte.weight": (vocabulary_size, d), "wpe.weight": (40, d)}
    shapes |= {f"ln_f.{kind}": (d,) for kind in ("weight", "bias")}
    for layer in range(2):
        for name, wide in (("attn.c_attn", 3), ("attn.c_proj", 1), ("mlp.c_fc", 4)):
            shapes |= {f"h.{layer}.{name}.weight": (d, wide * d), f"h.{layer}.{name}.bias": (wide * d,)}
        shapes |= {f"h.{layer}.mlp.c_proj.weight": (4 * d, d), f"h.{layer}.mlp.c_proj.bias": (d,)}
        shapes |= {f"h.{layer}.{norm}.{kind}": (d,) for norm in ("ln_1", "ln_2") for kind in ("weight", "bias")}
        shapes |= {f"h.{layer}.attn.bias": (1, 1, 40, 40)}
    prefixed = {f"transformer.{name}": shape for name, shape in shapes.items()}
    if not tied:
        prefixed |= {"lm_head.weight": (vocabulary_size, d)}
    return {name: random.normal(0, 0.5, shape).astype(np.float32) for name, shape in prefixed.items()}


def write_folder(folder: Path, *, tied: bool = True, **options: object) -> dict[str, Tensor]:
    folder.mkdir()
    weights = random_weights(len(PIECES), tied=tied)
    write_tensors(folder / "model.safetensors", weights)
    content = {"model_type": "gpt2", **SIZES, **options}
    (folder / "config.json").write_text(json.dumps(content), encoding="utf-8")
    (folder / "vocab.json").write_text(json.dumps({p: n for n, p in enumerate(PIECES)}), encoding="utf-8")
    (folder / "merges.txt").write_text("#version: 0.2\n" + "\n".join(MERGES) + "\n", encoding="utf-8")
    return {name.removeprefix("transformer."): torch.from_numpy(array) for name, array in weights.items()}


def logits(weights: dict[str, Tensor], ids: list[int]) -> Tensor:
    """Return GPT-2's logits at each position, written out from its description."""

    def norm(x_TD: Tensor, name: str) -> Tensor:
        return functional.layer_norm(x_TD, x_TD.shape[-1:], weights[f"{name}.weight"], weights[f"{name}.bias"], 1e-3)

    def linear(x_TD: Tensor, name: str) -> Tensor:
        return x_TD @ weights[f"{name}.weight"] + weights[f"{name}.bias"]

    x_TD = weights["wte.weight"][ids] + weights["wpe.weight"][: len(ids)]
    for layer in ("h.0", "h.1"):
        joined = linear(norm(x_TD, f"{layer}.ln_1"), f"{layer}.attn.c_attn").view(len(ids), 3, 3, 4)
        query, key, value = joined.permute(1, 2, 0, 3)
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x_TD = x_TD + linear(mixed.transpose(0, 1).flatten(1), f"{layer}.attn.c_proj")
        inner = functional.gelu(linear(norm(x_TD, f"{layer}.ln_2"), f"{layer}.mlp.c_fc"), approximate="tanh")
        x_TD = x_TD + linear(inner, f"{layer}.mlp.c_proj")
    return norm(x_TD, "ln_f") @ weights.get("lm_head.weight", weights["wte.weight"]).T


def ours(folder: Path, ids: list[int]) -> Tensor:
    network = load_model(folder).network()
    with torch.no_grad():
        return network.output.logits(network(torch.tensor([ids[:1]]), torch.tensor([[*ids[1:], 0]])))[0]


@pytest.mark.parametrize("tied", [True, False])
def test_logits_are_those_of_the_written_out_network(tmp_path: Path, tied: bool) -> None:
    weights = write_folder(tmp_path / "gpt2", tied=tied)
    import_model(tmp_path / "gpt2", tmp_path / "model", Languages())
    tokenizer = load_model(tmp_path / "model").tokenizers.target
    for text in TEXTS:
        ids = encode_text(tokenizer, text)
        found = ours(tmp_path / "model", ids)
        torch.testing.assert_close(found[:, :-1], logits(weights, ids), atol=1e-4, rtol=0)
        assert float(found[:, -1].max()) < -1000  # padding is never written


def test_pieces_are_joined_in_the_order_learned(tmp_path: Path) -> None:
    write_folder(tmp_path / "gpt2")
    import_model(tmp_path / "gpt2", tmp_path / "model", Languages())
    tokenizer = load_model(tmp_path / "model").tokenizers.target
    assert [tokenizer.piece(n) for n in tokenizer.encode("in the thin\n")] == ["in", "Ġthe", "Ġth", "in", "Ċ"]
    for text in TEXTS:
        assert tokenizer.decode(tokenizer.encode(text)) == text
        pieces = tokenizer.pieces(text)
        assert [piece.id for piece in pieces] == tokenizer.encode(text)
        assert (pieces[0].start, pieces[-1].end) == (0, len(text))
        assert all(one.end == other.start or one[2:] == other[2:] for one, other in pairwise(pieces))


def test_attention_is_a_triangle_over_readable_tokens(tmp_path: Path) -> None:
    write_folder(tmp_path / "gpt2")
    import_model(tmp_path / "gpt2", tmp_path / "model", Languages())
    report = transduce.load(tmp_path / "model", precision="float32", threads=1).attention("in the thin\nice 中")
    assert [token.text for token in report.target.tokens][:8] == ["in", "▁the", "▁th", "in", "Ċ", "i", "c", "e"]
    assert [token.word for token in report.target.tokens][:8] == [0, 1, 2, 2, 3, 3, 3, 3]
    assert report.target.tokens[-2].text == BYTE_NAMES["中".encode()[-1]]  # a part of a character
    weights_LHQK = report.blocks["decoder"].weights_LHQK
    assert weights_LHQK.shape[:2] == (2, 3)
    assert torch.equal(weights_LHQK, weights_LHQK.tril())
    torch.testing.assert_close(weights_LHQK.sum(dim=-1), torch.ones(weights_LHQK.shape[:3]))


def test_weights_in_parts_and_under_the_names_of_the_hub_are_the_same(tmp_path: Path) -> None:
    write_folder(tmp_path / "whole")
    import_model(tmp_path / "whole", tmp_path / "model", Languages())
    source = tmp_path / "parts"
    write_folder(source)
    (source / "README.md").write_text("---\nlicense: mit\n---\n", encoding="utf-8")
    (source / "model.safetensors").unlink()
    weights = {name.removeprefix("transformer."): array for name, array in random_weights(len(PIECES)).items()}
    masks = {name: np.tril(np.ones((1, 1, 40, 40), bool)) for name in weights if name.endswith(".attn.bias")}
    names = sorted(weights)
    parts = {"one.safetensors": names[:9], "two.safetensors": names[9:]}
    for part, own in parts.items():
        write_tensors(source / part, {name: masks.get(name, weights[name]) for name in own})
    named = {name: part for part, own in parts.items() for name in own}
    index = source / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {}, "weight_map": named}), encoding="utf-8")
    import_model(source, tmp_path / "joined", Languages())
    files = [tmp_path / name / "weights.safetensors" for name in ("model", "joined")]
    assert files[0].read_bytes() == files[1].read_bytes()
    assert "| licence | mit |" in (tmp_path / "joined" / "README.md").read_text(encoding="utf-8")

    for wrong, message in (({"x": "../one.safetensors"}, "does not name the files"), ({"x": "no"}, "no is missing")):
        index.write_text(json.dumps({"weight_map": wrong}), encoding="utf-8")
        with pytest.raises(ModelError, match=message):
            import_model(source, tmp_path / "other", Languages())


def test_other_options_and_weights_are_refused_by_name(tmp_path: Path) -> None:
    write_folder(tmp_path / "gpt2", scale_attn_by_inverse_layer_idx=True)
    with pytest.raises(ModelError, match="scale_attn_by_inverse_layer_idx = true"):
        import_model(tmp_path / "gpt2", tmp_path / "model", Languages())
    write_folder(tmp_path / "other", n_positions=39)
    with pytest.raises(ModelError, match="table_TD"):
        import_model(tmp_path / "other", tmp_path / "model", Languages())


@pytest.mark.slow
def test_it_writes_and_can_be_fine_tuned(tmp_path: Path) -> None:
    write_folder(tmp_path / "gpt2")
    import_model(tmp_path / "gpt2", tmp_path / "model", Languages())
    text = tmp_path / "own.txt"
    text.write_text("in the thin ice\n" * 60, encoding="utf-8")
    settings = {"training.batch_tokens": 128, "data.max_length": 16, "training.threads": 1, "training.peak": 0.01}
    run = transduce.train(
        text_file=text, output=tmp_path / "run", start_from=tmp_path / "model", steps=30, settings=settings
    )
    before = transduce.load(tmp_path / "model", precision="float32", threads=1).text_likelihood("in the thin ice\n")
    after = transduce.load(run.model, precision="float32", threads=1)
    assert after.text_likelihood("in the thin ice\n").log_probability > before.log_probability + 5
    assert len(after.generate("in the", tokens=20)) > 0


def test_transformers_gives_the_same_ids_logits_and_greedy_text(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers", reason="transformers is not installed; it is no dependency")
    tokenizers = pytest.importorskip("tokenizers", reason="tokenizers is not installed; it is no dependency")
    source = tmp_path / "gpt2"
    source.mkdir()
    learned = tokenizers.ByteLevelBPETokenizer()
    lines = [line for _ in range(3) for line in (*TEXTS, "the old man sings in the rain", "two cats' tails aren't 3")]
    learned.train_from_iterator(lines, vocab_size=330, special_tokens=["<|endoftext|>"])
    learned.save_model(str(source))
    torch.manual_seed(2)
    size = learned.get_vocab_size()
    config = transformers.GPT2Config(vocab_size=size, bos_token_id=0, eos_token_id=0, **SIZES)
    network = transformers.GPT2LMHeadModel(config).eval()
    for parameter in network.parameters():
        parameter.data.normal_(0, 0.4)
    network.save_pretrained(source)
    import_model(source, tmp_path / "model", Languages())
    model = transduce.load(tmp_path / "model", precision="float32", threads=1)
    for text in [*lines[:6], "\t\x1c x\u00a0 ²½ _y__ I'LL you'll", "  spaces   before", "\r\n"]:
        ids = learned.encode(text).ids
        assert encode_text(model.tokenizers.target, text)[1:] == ids
        with torch.no_grad():
            theirs = network(torch.tensor([ids])).logits[0]
        torch.testing.assert_close(ours(tmp_path / "model", ids)[:, :-1], theirs, atol=1e-4, rtol=0)
        if len(ids) <= 20:
            output = network.generate(torch.tensor([ids]), do_sample=False, max_new_tokens=15, pad_token_id=0)
            expected = learned.decode(output[0, len(ids) :].tolist())
            assert model.generate(text, temperature=0, tokens=15) == expected
