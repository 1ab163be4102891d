"""The text of a language model: nothing is lost, blocks are contiguous, and the end is held out."""

import gzip
import itertools
from pathlib import Path

import pytest
from tests.importing.test_gpt2 import write_folder

from transduce.data.config import DataConfig
from transduce.data.preparation import Prepared, is_prepared, prepare
from transduce.data.token_store import TokenStore
from transduce.decoding.generation import decode_text
from transduce.errors import ConfigError, DataError
from transduce.experiment import validate_experiment
from transduce.importing.formats import import_model
from transduce.model_directory import Languages

LINES = [f"line {number}, with some words" if number % 5 else "" for number in range(1, 101)]
TEXT = "\n".join(LINES) + "\n"


def prepared(tmp_path: Path, **keys: object) -> Prepared:
    file = tmp_path / "text.txt"
    if not file.exists():
        file.write_text(TEXT, encoding="utf-8")
    config = DataConfig.model_validate({"text": str(file), "pieces": "characters", "max_length": 16, **keys})
    return prepare(config, tmp_path / "data", vocabulary_size=400)


def rows(store: TokenStore) -> list[tuple[list[int], list[int]]]:
    return [(store.source(n).tolist(), store.target(n).tolist()) for n in range(len(store))]


def text_of(found: Prepared, store: TokenStore) -> str:
    return decode_text(found.tokenizers.target, [token for _, block in rows(store) for token in block])


def test_training_text_and_held_out_tail_are_the_whole_text(tmp_path: Path) -> None:
    found = prepared(tmp_path, held_out_tail=0.25)
    assert found.valid is not None
    train, valid = text_of(found, found.train), text_of(found, found.valid)
    assert train + valid == TEXT
    assert 0.72 * len(TEXT) <= len(train) <= 0.78 * len(TEXT)
    assert found.train.notes["characters"] == len(train)
    assert found.valid.notes["bytes"] == len(valid.encode())


def test_text_for_the_pieces_of_gpt2_stays_as_it_is(tmp_path: Path) -> None:
    write_folder(tmp_path / "gpt2")
    import_model(tmp_path / "gpt2", tmp_path / "model", Languages())
    text = "def in(x):\n    the  =  'cafe\u0301'\n\n\t# thin\n" * 20
    (tmp_path / "text.txt").write_text(text, encoding="utf-8")
    tokenizer = next(path for path in (tmp_path / "model").iterdir() if "tokenizer" in path.name)
    found = prepared(tmp_path, pieces="byte_pieces", tokenizer=str(tokenizer))
    assert found.valid is not None
    ids = [token for store in (found.train, found.valid) for _, block in rows(store) for token in block]
    assert found.tokenizers.target.decode(ids) == text


def test_blocks_of_a_stream_are_full_and_each_begins_after_the_token_that_it_is_given(tmp_path: Path) -> None:
    found = prepared(tmp_path)
    blocks = rows(found.train)
    assert {len(block) for _, block in blocks[:-1]} == {16}
    assert blocks[0][0] == [found.tokenizers.special.start]
    for (_, earlier), (before, _) in itertools.pairwise(blocks):
        assert before == [earlier[-1]]


@pytest.mark.parametrize(("unit", "count"), [("line", 72), ("document", 18)])
def test_no_block_holds_parts_of_two_texts(tmp_path: Path, unit: str, count: int) -> None:
    found = prepared(tmp_path, unit=unit, max_length=1000)
    blocks = rows(found.train)
    assert len(blocks) == count
    assert all(before == [found.tokenizers.special.start] for before, _ in blocks)
    end = "\n\n" if unit == "document" else "\n"
    for _, block in blocks:
        text = decode_text(found.tokenizers.target, block)
        assert text.endswith(end)
        assert text.count(end) == 1


def test_several_files_may_be_compressed_and_are_read_in_order(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("first file\n" * 30, encoding="utf-8")
    (tmp_path / "more.txt.gz").write_bytes(gzip.compress(b"second file\n" * 30))
    files = [str(tmp_path / name) for name in ("text.txt", "more.txt.gz")]
    found = prepared(tmp_path, text=files, valid=files[:1])
    assert text_of(found, found.train) == "first file\n" * 30 + "second file\n" * 30
    assert found.valid is not None
    assert text_of(found, found.valid) == "first file\n" * 30


def test_a_prepared_text_is_reused_until_it_changes(tmp_path: Path) -> None:
    found = prepared(tmp_path)
    config = DataConfig(text=(str(tmp_path / "text.txt"),), pieces="characters", max_length=16)
    assert is_prepared(config, found.folder, vocabulary_size=400)
    (tmp_path / "text.txt").write_text(TEXT * 2, encoding="utf-8")
    assert not is_prepared(config, found.folder, vocabulary_size=400)


def test_empty_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("\n\n\n\n\n\n\n\n\n\n\n", encoding="utf-8")
    with pytest.raises(DataError, match="every line is empty"):
        prepared(tmp_path)


LANGUAGE_MODEL = {"kind": "language-model"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"data": {"text": "a.txt"}}, "data.text has no translations"),
        ({"data": {"train": "a.tsv"}, "model": LANGUAGE_MODEL}, "learns from text without translations"),
        ({"data": {"text": "a.txt", "train": "a.tsv"}, "model": LANGUAGE_MODEL}, "has no use for data.train"),
        ({"model": LANGUAGE_MODEL, "training": {"bpe_dropout": 0.1}}, "leave out training.bpe_dropout"),
        ({"model": LANGUAGE_MODEL, "data": {"max_length": 2000}}, "has fewer positions"),
    ],
)
def test_settings_that_a_language_model_cannot_have_are_refused(content: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        validate_experiment(content, where="here")
