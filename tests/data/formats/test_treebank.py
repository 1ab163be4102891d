import gzip
from pathlib import Path

import pytest
from pydantic import ValidationError

from transduce.data.config import DataConfig
from transduce.data.formats import Corpus, Selection
from transduce.data.preparation import prepare
from transduce.errors import DataError

TREES = """(ROOT (S (NP-SBJ (DT the) (NN cat))
  (VP (VBZ sits))))
(ROOT (S (-NONE- *)))
( (NN stop) )
"""


@pytest.mark.parametrize("name", ["x.ptb", "x.MRG.gz"])
def test_words_are_the_source_and_symbols_the_target(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(gzip.compress(TREES.encode()) if name.endswith("gz") else TREES.encode())
    pairs = [tuple(pair)[:3] for pair in Corpus(str(path)).pairs()]
    assert pairs == [("the cat sits", "(S (NP XX XX )NP (VP XX )VP )S", 1), ("", "", 3), ("stop", "XX", 4)]
    kept = next(Corpus(str(path), Selection(tree_keeps=("tags", "functions"))).pairs())
    assert kept.target == "(S (NP-SBJ DT NN )NP-SBJ (VP VBZ )VP )S"


def test_an_error_has_file_and_line(tmp_path: Path) -> None:
    (tmp_path / "x.ptb").write_text("(S (NN a))\n(S (NN b)\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"x\.ptb:2: the tree that begins here is not closed"):
        list(Corpus(str(tmp_path / "x.ptb")).pairs())


def test_trees_have_a_vocabulary_for_each_side_and_brackets_are_words() -> None:
    config = DataConfig(train=("a.ptb.gz",), valid=("b.mrg",))
    assert (config.vocabularies, config.has_trees) == ("separate", True)
    assert (config.pieces_of("source_tokenizer"), config.pieces_of("tokenizer")) == ("bpe", "words")
    assert not DataConfig(train=("a.tsv",)).has_trees
    with pytest.raises(ValidationError, match="Words and brackets of trees have a vocabulary each"):
        DataConfig(train=("a.ptb",), vocabularies="shared")
    with pytest.raises(ValidationError, match=r"Trees cannot be mixed with other text: b\.tsv is none of"):
        DataConfig(train=("a.ptb",), valid=("b.tsv",))


def test_sentences_with_equal_trees_may_be_held_out(tmp_path: Path) -> None:
    path = tmp_path / "x.ptb"
    path.write_text("".join(f"(S (NN word{n}) (VB is))\n" for n in range(40)), encoding="utf-8")
    config = DataConfig(train=(str(path),), held_out_valid=10)
    prepared = prepare(config, tmp_path / "run", vocabulary_size=400, source_vocabulary_size=300)
    assert prepared.valid is not None
    assert (len(prepared.train), len(prepared.valid)) == (20, 10)
