"""The search for trees against the enumeration of all trees."""

from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import pytest

from transduce.decoding.beam_search import beam_search
from transduce.decoding.config import DecodingConfig
from transduce.decoding.tree_search import TreeSymbols, tree_search
from transduce.errors import DataError
from transduce.special_tokens import OWN_SPECIAL_TOKENS
from transduce.text.trees import tree_of
from transduce.text.word_tokenizer import WordTokenizer

if TYPE_CHECKING:
    from tests.decoding.conftest import TableModel

EOS = OWN_SPECIAL_TOKENS.end
WORDS = {4: "(A", 5: "(B", 6: ")A", 7: ")B", 8: "XX"}
SYMBOLS = TreeSymbols(9, EOS, opening={4: "A", 5: "B"}, closing={"A": 6, "B": 7}, leaves=frozenset({8}))


def is_tree(tokens: tuple[int, ...], words: int) -> bool:
    try:
        tree_of([str(place) for place in range(words)], [WORDS[token] for token in tokens])
    except DataError:
        return False
    return True


def trees(words: int, *, longest: int) -> list[tuple[int, ...]]:
    found = [tokens for length in range(1, longest) for tokens in product(WORDS, repeat=length)]
    return [(*tokens, EOS) for tokens in found if is_tree(tokens, words)]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("words", [1, 2])
def test_a_wide_beam_finds_the_best_of_all_trees(table_model: "type[TableModel]", seed: int, words: int) -> None:
    model = table_model.random(seed, symbols=5)
    config = DecodingConfig(beam=400, length_penalty=0.0, extra_length=5)
    ((best, *_),) = tree_search(model, np.array([[4, EOS]]), config, symbols=SYMBOLS, words=[words])
    every = {
        tokens: sum(model.log_probabilities(4, tokens[:n])[token] for n, token in enumerate(tokens))
        for tokens in trees(words, longest=7)
    }
    assert best.tokens == max(every, key=every.__getitem__)
    assert best.log_probability == pytest.approx(every[best.tokens], abs=1e-4)


@pytest.mark.parametrize("beam", [1, 2, 5])
def test_every_output_of_any_model_is_a_tree_over_its_words(table_model: "type[TableModel]", beam: int) -> None:
    config = DecodingConfig(beam=beam, alternatives=beam, extra_length=9)
    counts = [1, 4, 7, 2, 11]
    source = np.array([[4 + row, *[5] * row, EOS, *[0] * (4 - row)] for row in range(5)])
    for seed in range(20):
        model = table_model.random(seed, symbols=5, sources=5)
        found = tree_search(model, source, config, symbols=SYMBOLS, words=counts)
        for own, words in zip(found, counts, strict=True):
            assert own
            for hypothesis in own:
                assert hypothesis.is_finished
                assert is_tree(hypothesis.tokens[:-1], words)


def test_an_output_that_is_a_tree_already_stays(table_model: "type[TableModel]") -> None:
    table_MV = np.full((9, 9), 1e-9)
    for token, after in zip((OWN_SPECIAL_TOKENS.start, 4, 8, 6), (4, 8, 6, EOS), strict=True):
        table_MV[token, after] = 1.0
    model = table_model(table_MV[None])
    config = DecodingConfig(beam=3)
    source = np.array([[4, EOS]])
    assert tree_search(model, source, config, symbols=SYMBOLS, words=[1]) == beam_search(model, source, config)


def test_more_words_than_the_output_has_room_for_are_refused(table_model: "type[TableModel]") -> None:
    config = DecodingConfig(maximum_length=3)
    with pytest.raises(DataError, match="A tree of 3 words needs more than the 3 symbols"):
        tree_search(table_model.random(1, symbols=5), np.array([[4, EOS]]), config, symbols=SYMBOLS, words=[3])


def test_symbols_follow_from_the_vocabulary() -> None:
    tokenizer = WordTokenizer(["XX", "(NP", ")NP", "(X", "NN"])
    xx, opened, closed, _, nn = tokenizer.words.values()
    symbols = TreeSymbols.of(tokenizer)
    assert (symbols.opening, symbols.closing) == ({opened: "NP"}, {"NP": closed})
    assert symbols.leaves == {xx, nn}
    with pytest.raises(DataError, match="writes no trees"):
        TreeSymbols.of(WordTokenizer(["Haus"]))
