"""Folders of BERT with random weights: the network written out here, and transformers, are the oracles."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.importing.bert_folder import LETTERS, PIECES, SIZES, random_weights, write_folder
from torch import Tensor
from torch.nn import functional

from transduce.errors import DataError, ModelError
from transduce.importing.formats import import_model
from transduce.loaded_encoder import LoadedEncoder
from transduce.model_directory import Languages, load_model
from transduce.text.word_piece_tokenizer import WordPieceTokenizer


def written_out(weights: dict[str, np.ndarray], ids: list[int], types: list[int]) -> tuple[Tensor, Tensor]:
    """Return BERT's last hidden vectors and its logits, written out from its description."""
    tensors = {name.removeprefix("bert."): torch.from_numpy(array) for name, array in weights.items()}

    def norm(x_SD: Tensor, name: str) -> Tensor:
        return functional.layer_norm(x_SD, (12,), tensors[f"{name}.weight"], tensors[f"{name}.bias"], 1e-3)

    def linear(x_SD: Tensor, name: str) -> Tensor:
        return x_SD @ tensors[f"{name}.weight"].T + tensors[f"{name}.bias"]

    word, position, kind = (tensors[f"embeddings.{n}_embeddings.weight"] for n in ("word", "position", "token_type"))
    x_SD = norm(word[ids] + position[: len(ids)] + kind[types], "embeddings.LayerNorm")
    for layer in ("encoder.layer.0", "encoder.layer.1"):
        q, k, v = (linear(x_SD, f"{layer}.attention.self.{one}") for one in ("query", "key", "value"))
        heads = [(q[:, h] @ k[:, h].T / 2).softmax(-1) @ v[:, h] for h in (slice(0, 4), slice(4, 8), slice(8, 12))]
        mixed = linear(torch.cat(heads, dim=-1), f"{layer}.attention.output.dense")
        x_SD = norm(x_SD + mixed, f"{layer}.attention.output.LayerNorm")
        inner = functional.gelu(linear(x_SD, f"{layer}.intermediate.dense"))
        x_SD = norm(x_SD + linear(inner, f"{layer}.output.dense"), f"{layer}.output.LayerNorm")
    head = norm(functional.gelu(linear(x_SD, "cls.predictions.transform.dense")), "cls.predictions.transform.LayerNorm")
    return x_SD, head @ word.T + tensors["cls.predictions.bias"]


def imported(folder: Path, weights: dict[str, np.ndarray], **options: object) -> LoadedEncoder:
    write_folder(folder / "bert", weights, **options)
    import_model(folder / "bert", folder / "model", Languages())
    return LoadedEncoder.load(folder / "model", threads=1)


def test_vectors_and_fillings_are_those_of_the_written_out_network(tmp_path: Path) -> None:
    weights = random_weights()
    encoder = imported(tmp_path, weights)
    for text, second in (("The [MASK] sat", None), ("the cats", "[MASK] sat, on a mat.")):
        ids = encoder.sentence(text, second).ids
        types = [0] * len(ids) if second is None else [0] * 5 + [1] * (len(ids) - 5)
        hidden_SD, logits_SV = written_out(weights, ids, types)
        np.testing.assert_allclose(encoder.vectors(text, second=second), hidden_SD, atol=1e-4)
        best = logits_SV[ids.index(4)].softmax(-1).topk(3)
        found = encoder.fill(text, second=second, alternatives=3)[0]
        assert [each.token for each in found] == [PIECES[n] for n in best.indices]
        np.testing.assert_allclose([each.probability for each in found], best.values, atol=1e-4)


def test_a_text_is_embedded_as_if_it_were_alone(tmp_path: Path) -> None:
    encoder = imported(tmp_path, random_weights())
    texts = ["the cat", "the cat sat on the mat.", "", *["a b c"] * 20]
    together = encoder.embed(texts)
    for text, vector in zip(texts, together, strict=True):
        np.testing.assert_allclose(vector, encoder.vectors(text).mean(axis=0), atol=1e-5)
    np.testing.assert_allclose(encoder.embed(texts[:1], pooling="first")[0], encoder.vectors(texts[0])[0], atol=1e-5)
    assert encoder.embed([]).shape == (0, 12)


def test_words_are_cut_into_the_longest_pieces_and_keep_their_places(tmp_path: Path) -> None:
    tokenizer = imported(tmp_path, random_weights()).tokenizers.target
    text = "The CATS\u0301 pl\u00e1ying,中mat [MASK]\x07 \U0001f642 [mask]"
    pieces = tokenizer.pieces(text)
    shown = "the cat ##s play ##ing , 中 mat [MASK] [UNK] [UNK] m ##a ##s ##k [UNK]"
    assert [piece.text for piece in pieces] == shown.split()
    assert [text[piece.start : piece.end] for piece in pieces] == (
        "The|CAT|S|play|ing|,|中|mat|[MASK]|\U0001f642|[|m|a|s|k|]".replace("play", "pl\u00e1y").split("|")
    )
    assert tokenizer.decode(tokenizer.encode("the cats, playing")) == "the cats , playing"
    assert tokenizer.encode("a" * 101) == [1]
    assert WordPieceTokenizer.from_bytes(tokenizer.to_bytes()).encode(text) == tokenizer.encode(text)


def test_a_tokenizer_json_may_leave_out_what_is_usual_and_nothing_else(tmp_path: Path) -> None:
    normalizer = {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "lowercase": False}
    content: dict[str, Any] = {
        "added_tokens": [{"id": place, "content": piece} for place, piece in enumerate(PIECES[:5])],
        "normalizer": {**normalizer, "strip_accents": None},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "model": {"vocab": {piece: place for place, piece in enumerate(PIECES)}},
    }
    write_folder(tmp_path / "bert", random_weights())
    path = tmp_path / "bert" / "tokenizer.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    import_model(tmp_path / "bert", tmp_path / "model", Languages())
    tokenizer = LoadedEncoder.load(tmp_path / "model").tokenizers.target
    assert [piece.text for piece in tokenizer.pieces("the The cats")] == ["the", "[UNK]", "cat", "##s"]
    for part, key, value in (("model", "continuing_subword_prefix", "@@"), ("normalizer", "clean_text", False)):
        path.write_text(json.dumps({**content, part: {**content[part], key: value}}), encoding="utf-8")
        with pytest.raises(ModelError, match="does not cut words into WordPiece as BERT does"):
            import_model(tmp_path / "bert", tmp_path / "other", Languages())


def test_older_names_of_weights_are_read_and_a_head_may_be_missing(tmp_path: Path) -> None:
    modern = imported(tmp_path, random_weights())
    (tmp_path / "old").mkdir()
    older = imported(tmp_path / "old", random_weights(gain="gamma", bias="beta"))
    np.testing.assert_array_equal(older.vectors("the cat"), modern.vectors("the cat"))
    config = tmp_path / "bert" / "config.json"
    config.write_text(json.dumps({"hidden_act": "gelu", **SIZES}), encoding="utf-8")  # without model_type
    import_model(tmp_path / "bert", tmp_path / "untyped", Languages())
    np.testing.assert_array_equal(
        LoadedEncoder.load(tmp_path / "untyped", threads=1).vectors("the cat"), modern.vectors("the cat")
    )
    (tmp_path / "bare").mkdir()
    bare = imported(tmp_path / "bare", random_weights(head=False))
    assert bare.embed(["the cat"]).shape == (1, 12)
    with pytest.raises(ModelError, match="no layer that predicts masked tokens"):
        bare.fill("the [MASK]")


def test_what_cannot_be_read_or_filled_is_refused(tmp_path: Path) -> None:
    encoder = imported(tmp_path, random_weights())
    with pytest.raises(DataError, match=r"has no \[MASK\]"):
        encoder.fill("the cat")
    with pytest.raises(DataError, match="42 tokens; this model reads 40"):
        encoder.embed(["a " * 40])
    with pytest.raises(ModelError, match="is a text encoder, which neither translates nor writes"):
        load_model(tmp_path / "model").network()
    write_folder(tmp_path / "relative", random_weights(), position_embedding_type="relative_key")
    with pytest.raises(ModelError, match='position_embedding_type = "relative_key"'):
        import_model(tmp_path / "relative", tmp_path / "other", Languages())
    write_folder(tmp_path / "classifier", random_weights() | {"classifier.weight": np.zeros((2, 12), np.float32)})
    with pytest.raises(ModelError, match=r"the weight classifier\.weight, which BERT does not have"):
        import_model(tmp_path / "classifier", tmp_path / "other", Languages())
    write_folder(tmp_path / "cut", random_weights())
    (tmp_path / "cut" / "vocab.txt").write_text("\n".join(PIECES[1:]), encoding="utf-8")
    with pytest.raises(ModelError, match=r"lacks \[PAD\]"):
        import_model(tmp_path / "cut", tmp_path / "other", Languages())


def test_a_report_of_two_texts_says_where_the_second_begins(tmp_path: Path) -> None:
    encoder = imported(tmp_path, random_weights())
    report = encoder.attention("The cats", second="sat.")
    shown = ["[CLS]", "▁the", "▁cat", "s", "[SEP]", "▁sat", "▁.", "[SEP]"]
    assert [token.text for token in report.source.tokens] == shown
    assert [report.source.text[token.start : token.end] for token in report.source.tokens[5:7]] == ["sat", "."]
    assert report.to_dictionary()["second"] == 5
    assert report.to_dictionary()["target"]["tokens"] == []
    assert encoder.attention("The cats").second is None
    block = report.blocks["encoder"]
    assert (block.queries, block.keys, block.weights_LHQK.shape) == ("source", "source", (2, 3, 8, 8))
    numbers = encoder.head_numbers(source=report.source.ids, target=[], stack="encoder", layer=1, head=2)
    assert numbers.query.shape == [8, 4]


SENTENCES = [
    *(
        "Caf\u00e9 na\u00efve \u00c5ngstr\u00f6m \u0130stanbul STRASSE \u00df",
        "it's 12 o'clock: 3.14% of $5 <b>x</b> `a` ~b^c_d|e",
    ),
    *(
        "中文和English混合",
        "\u3000full\u00a0width\ttabs\nlines\r\n",
        "zero\u200bwidth\u00adhyphen \ufffd\x00",
        "\u03a3\u03a3 \u039f\u0394\u039f\u03a3",
    ),
    *(
        "[MASK] and [SEP], [CLS]x[PAD]y [UNK] [mask]",
        "\U0001f642 emoji \u2014 dash \u00bfqu\u00e9? \u00abq\u00bb",
        "x" * 120,
        "",
        " ",
    ),
    *(
        f"the {a} cat {b}s on {a}ing mats, no. {n}"
        for n, (a, b) in enumerate(zip("abcdefghij" * 9, "klmnopqrst" * 9, strict=True))
    ),
]


@pytest.mark.parametrize("lowercase", [True, False])
def test_transformers_gives_the_same_ids_vectors_and_logits_on_100_sentences(tmp_path: Path, lowercase: bool) -> None:
    transformers = pytest.importorskip("transformers", reason="transformers is not installed; it is no dependency")
    source = tmp_path / "bert"
    source.mkdir()
    vocabulary = [*PIECES, *(letter.upper() for letter in LETTERS), "##é", "é", "##ß", "σ", "##σ", "文", "$", "'"]
    (tmp_path / "vocab.txt").write_text("\n".join(dict.fromkeys(vocabulary)) + "\n", encoding="utf-8")
    tokenizer = transformers.BertTokenizerFast(str(tmp_path / "vocab.txt"), do_lower_case=lowercase)
    tokenizer.save_pretrained(source)
    if not lowercase:  # the tokenizer is then read as older versions write it
        (source / "tokenizer.json").unlink()
        (tmp_path / "vocab.txt").rename(source / "vocab.txt")
    torch.manual_seed(2)
    sizes = SIZES | {"max_position_embeddings": 128, "hidden_act": "gelu" if lowercase else "gelu_new"}
    config = transformers.BertConfig(vocab_size=len(tokenizer), attn_implementation="eager", **sizes)
    network = transformers.BertForPreTraining(config).eval()
    for parameter in network.parameters():
        parameter.data.normal_(0, 0.4)
    network.save_pretrained(source)
    if not lowercase:
        (source / "model.safetensors").unlink()
        torch.save(network.state_dict(), source / "pytorch_model.bin")
    import_model(source, tmp_path / "model", Languages())
    encoder = LoadedEncoder.load(tmp_path / "model", threads=1)
    assert len(SENTENCES) >= 100
    for number, text in enumerate(SENTENCES):
        second = (SENTENCES[number - 1] or None) if number % 3 == 1 else None  # transformers reads no empty one
        theirs = tokenizer(text, second, return_tensors="pt")
        ids = encoder.sentence(text, second).ids
        assert ids == theirs["input_ids"][0].tolist(), text
        assert encoder.network.types_of(ids) == theirs["token_type_ids"][0].tolist() or "[SEP]" in text
        with torch.no_grad():
            expected = network(**theirs, output_hidden_states=True, output_attentions=True)
            found_SV = encoder.network.logits(torch.from_numpy(encoder.vectors(text, second=second)))
        if "[SEP]" in f"{text} {second}":
            continue
        np.testing.assert_allclose(encoder.vectors(text, second=second), expected.hidden_states[-1][0], atol=1e-4)
        torch.testing.assert_close(found_SV, expected.prediction_logits[0], atol=1e-4, rtol=0)
        if number % 10 == 0:
            weights_LHQK = encoder.attention(text, second=second).blocks["encoder"].weights_LHQK
            torch.testing.assert_close(weights_LHQK, torch.cat(expected.attentions), atol=1e-5, rtol=0)
