"""Generation, with a Markov chain in place of a network."""

import math
from collections.abc import Sequence
from itertools import islice, pairwise

import numpy as np
import pytest
from pydantic import ValidationError

from transduce.decoding.generation import GenerationConfig, decode_text, encode_text, generate_tokens, text_pieces
from transduce.networks.stepwise import Ids, LogProbabilities
from transduce.special_tokens import OWN_SPECIAL_TOKENS
from transduce.text.character_tokenizer import CharacterTokenizer

TOKENIZER = CharacterTokenizer.learn(["to be or not to be", "that is the question"], vocabulary_size=400)


class Counting:
    """After token n comes n + 1 with probability 0.6, n + 2 with 0.4; it can read `context` tokens."""

    source_padding = 0
    tokens = OWN_SPECIAL_TOKENS

    def __init__(self, context: int | None = None, size: int = 50) -> None:
        self.context, self.size, self.starts = context, size, list[list[int]]()

    def longest_target(self, source_length: int) -> int | None:
        return None if self.context is None else max(0, self.context - source_length + 1)

    def start(self, source_BS: Ids) -> list[int]:
        self.starts.append(source_BS[0].tolist())
        return [int(source_BS[0, -1])]

    def step(self, state: list[int], tokens_BW: Ids) -> LogProbabilities:
        newest = int(tokens_BW[0, 0])
        last = state[-1] if newest == OWN_SPECIAL_TOKENS.start else newest
        log_probabilities = np.full((1, 1, self.size), -math.inf)
        log_probabilities[0, 0, (last + 1) % self.size] = math.log(0.6)
        log_probabilities[0, 0, (last + 2) % self.size] = math.log(0.4)
        return log_probabilities

    def select(self, state: list[int], sentences_B: Ids, beams_BW: Ids) -> list[int]:
        return state


def tokens(model: Counting, prompt: Sequence[int], **keys: object) -> list[int]:
    return list(generate_tokens(model, prompt, GenerationConfig.model_validate(keys)))


def test_temperature_zero_takes_the_most_probable_token() -> None:
    assert tokens(Counting(), [2, 10], tokens=6, temperature=0) == [11, 12, 13, 14, 15, 16]


def test_a_seed_decides_the_text_and_top_k_limits_it() -> None:
    one = tokens(Counting(size=4000), [2, 10], tokens=300, temperature=1, seed=1)
    assert one == tokens(Counting(size=4000), [2, 10], tokens=300, temperature=1, seed=1)
    assert one != tokens(Counting(size=4000), [2, 10], tokens=300, temperature=1, seed=2)
    share = sum(after - before == 1 for before, after in pairwise(one)) / 299
    assert 0.5 < share < 0.7
    assert tokens(Counting(), [2, 10], tokens=5, temperature=1, top_k=1) == [11, 12, 13, 14, 15]


def test_a_full_context_goes_on_with_its_later_half() -> None:
    model = Counting(context=8, size=4000)
    assert tokens(model, [2, 100], tokens=20, temperature=0) == list(range(101, 121))
    assert model.starts[0] == [2, 100]
    assert all(len(start) == 4 for start in model.starts[1:])
    assert all(start == list(range(start[0], start[0] + 4)) for start in model.starts[1:])


def test_text_with_line_breaks_comes_back() -> None:
    text = "to be\n\nor not to be\n"
    ids = encode_text(TOKENIZER, text)
    assert ids[0] == OWN_SPECIAL_TOKENS.start
    assert decode_text(TOKENIZER, ids[1:]) == text


@pytest.mark.parametrize("prompt", ["", "to", "that is\nthe quest", "to be "])
def test_pieces_joined_are_the_text(prompt: str) -> None:
    rest = "ion\nor not to be\n\nthat is it"
    ids = encode_text(TOKENIZER, rest)[1:]
    pieces = list(text_pieces(TOKENIZER, encode_text(TOKENIZER, prompt), iter(ids), ()))
    assert "".join(pieces) == rest
    assert len(pieces) > 10


def test_a_stop_text_ends_the_text_and_is_never_shown() -> None:
    ids = encode_text(TOKENIZER, "to be or\nnot\n\nto be")[1:]
    for stop, wanted in (("\n\n", "to be or\nnot"), ("not", "to be or\n"), ("be\n", "to be or\nnot\n\nto be")):
        assert "".join(text_pieces(TOKENIZER, [2], iter(ids), [stop])) == wanted


def test_tokens_after_the_stop_are_never_computed() -> None:
    def endless() -> "list[int]":
        raise AssertionError("asked for more")

    ids = encode_text(TOKENIZER, "ab\n")[1:]
    counted = iter(ids)
    assert "".join(text_pieces(TOKENIZER, [2], islice(counted, 10), ["\n"])) == "ab"


def test_a_character_of_several_bytes_comes_whole() -> None:
    ids = encode_text(TOKENIZER, "a€b")[1:]
    assert len(ids) == 5
    assert list(text_pieces(TOKENIZER, [2], iter(ids), ())) == ["a", "€", "b"]


def test_a_beam_with_a_temperature_is_refused() -> None:
    with pytest.raises(ValidationError, match="draws nothing at random"):
        GenerationConfig(beam=4, temperature=0.5)
