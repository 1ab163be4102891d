"""Agreement between texts, against counting by hand and by Counter; and the translation that goes by it."""

import random
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
import torch

from transduce.decoding.config import DecodingConfig, DecodingOptions
from transduce.decoding.hypothesis import Hypothesis
from transduce.model import ModelConfig, Transformer
from transduce.model_directory import Description, save_model
from transduce.text.bpe_tokenizer import BpeTokenizer
from transduce.text.tokenizer_pair import TokenizerPair
from transduce.translator import Translator
from transduce.translator.consensus import agreements, by_agreement
from transduce.translator.cutting import sentences_to_search
from transduce.translator.searching import Searcher

LINES = ["the dog runs.", "a cat sleeps here", "der Hund läuft.", "eine Katze schläft hier, im „Haus“"] * 3
SENTENCES = ["the dog runs.", "a cat", "one two three four five", "x", "der Hund", "sleeps here a cat"]
TEXTS = [*SENTENCES, "nothing. And here", ""]


def shared_runs(ours: Sequence[str], theirs: Sequence[str], *, longest: int) -> float:
    """Return what two texts share, run by run."""
    total = 0.0
    for n in range(1, longest + 1):
        runs = [Counter(tuple(own[k : k + n]) for k in range(len(own) - n + 1)) for own in (ours, theirs)]
        if count := runs[0].total() + runs[1].total():
            total += 2 * (runs[0] & runs[1]).total() / count
    return total / longest


def agreement(ours: str, theirs: str) -> float:
    """Return F of two texts as the module's opening defines it."""
    words = [re.findall(r"\w+|[^\w\s]", text) for text in (ours, theirs)]
    return (shared_runs(ours, theirs, longest=6) + shared_runs(words[0], words[1], longest=4)) / 2


def ranked(texts: Sequence[str], scores: Sequence[float]) -> list[str]:
    """Return what `by_agreement` makes of hypotheses with these texts, each a token of its own."""
    hypotheses = [Hypothesis((n,), 3 * score, score, is_finished=True) for n, score in enumerate(scores)]
    return [texts[own.tokens[0]] for own in by_agreement(hypotheses, decode=lambda tokens: texts[tokens[0]])]


def test_two_texts_by_hand() -> None:
    # "a b." and "a c." share a, space and full stop of 4 + 4 characters, and "a " of 3 + 3 pairs; a and the full stop
    # of 3 + 3 words; nothing longer.
    found = agreements(["a b.", "a c."])
    assert found[0, 1] == pytest.approx(((6 / 8 + 2 / 6) / 6 + (4 / 6) / 4) / 2)


def test_a_run_that_repeats_is_shared_as_often_as_in_the_text_that_has_it_less() -> None:
    characters = (6 / 8 + 4 / 6 + 2 / 4) / 6  # aaaa and aaa[end]: 3 of 4 + 4, 2 of 3 + 3, 1 of 2 + 2
    assert agreements(["aaaa", "aaab"])[0, 1] == pytest.approx(characters / 2)


def test_it_counts_as_counting_one_by_one_does() -> None:
    dice = random.Random(1)
    texts = ["".join(dice.choice("ab é.") for _ in range(dice.randrange(25))) for _ in range(40)]
    expected = [[agreement(ours, theirs) for theirs in texts] for ours in texts]
    np.testing.assert_allclose(agreements(texts), expected, atol=1e-12)


def test_equal_texts_of_six_characters_and_four_words_agree_wholly() -> None:
    np.testing.assert_allclose(agreements(["a dog, 2 cats"] * 3), np.ones((3, 3)), atol=1e-12)


def test_a_stray_text_loses_to_one_that_others_resemble() -> None:
    stray, first, second = "Zucker!", "Ein Hund läuft schnell.", "Ein Hund rennt schnell."
    assert ranked([stray, first, second], [-1.0, -1.1, -1.15]) == [first, second, stray]


def test_a_text_far_more_probable_than_all_others_stays_first() -> None:
    assert ranked(["Zucker!", "Ein Hund läuft.", "Ein Hund rennt."], [-1.0, -9.0, -9.0])[0] == "Zucker!"


def test_one_text_made_in_several_ways_votes_as_often_and_is_ranked_once() -> None:
    stray, twice, other = "Zucker!", "Ein Hund läuft.", "Ein Mann geht."
    assert ranked([stray, twice, other], [-1.0, -1.3, -1.5])[0] == stray
    found = ranked([stray, twice, twice, other], [-1.0, -1.3, -1.3, -1.5])
    assert (found[0], found[-1]) == (twice, twice)


def test_nothing_to_choose_from_is_left_as_it_is() -> None:
    assert ranked(["one"], [-np.inf]) == ["one"]
    assert ranked([], []) == []


@pytest.fixture(scope="module")
def translator(tmp_path_factory: pytest.TempPathFactory) -> Translator:
    tokenizer = BpeTokenizer.learn(LINES, vocabulary_size=400)
    torch.manual_seed(3)
    config = ModelConfig(vocabulary_size=tokenizer.vocabulary_size, d_model=32, heads=2, d_ff=32, layers=1, dropout=0)
    parameters = {name: parameter.detach() for name, parameter in Transformer(config).named_parameters()}
    folder: Path = tmp_path_factory.mktemp("models") / "model"
    # The network is untrained, its outputs far apart: with a large penalty all of them have a vote.
    description = Description(
        architecture=config, decoding={"extra_length": 8, "length_penalty": 4.0, "beam": 12, "keep_form": False}
    )
    save_model(folder, description, parameters, tokenizers=TokenizerPair.shared(tokenizer), card="")
    return Translator.load(folder, precision="float32", threads=1)


def _all_outputs(translator: Translator, text: str, config: DecodingConfig) -> list[tuple[str, float]]:
    """Return text and score of all hypotheses of a sentence, also of those with the same text."""
    searcher = Searcher(translator.stepper, translator.tokenizers.target.decode)
    cut, target = translator._cutter.cut([text]), translator.tokenizers.target
    sentences = sentences_to_search(cut, target, numbers=None, prefixes=None)
    return [(searcher.decode(own.tokens), own.score) for own in searcher._search(sentences, config)[0]]


@pytest.mark.parametrize("stop", ["certain", "full"])
def test_what_agrees_most_with_all_that_the_beam_ends_with_comes_first(
    translator: Translator, stop: Literal["certain", "full"]
) -> None:
    changed = 0
    for text in SENTENCES:
        offered = _all_outputs(translator, text, translator.configure(alternatives=12, stop=stop))
        votes = [sum(np.exp(2 * weight) * agreement(own, other) for other, weight in offered) for own, _ in offered]
        ranked = [offered[place] for place in sorted(range(len(offered)), key=lambda place: -votes[place])]
        expected = list({own[0]: own for own in reversed(ranked)}.values())[::-1]  # the first of those with one text
        found = translator.translate(text, alternatives=3, stop=stop, consensus=True).alternatives
        assert [(own.text, own.score) for own in found] == sorted(expected, key=ranked.index)[:3]
        changed += found[0].text != offered[0][0]
    assert changed, "else nothing is shown"


def test_company_changes_no_text(translator: Translator) -> None:
    together = translator.translate(TEXTS, consensus=True)
    assert [own.text for own in together] == [translator.translate(text, consensus=True).text for text in TEXTS]


def test_a_beam_of_one_and_samples_are_as_without(translator: Translator) -> None:
    cases: list[DecodingOptions] = [{"beam": 1}, {"sample": True, "alternatives": 4}]
    for options in cases:
        without = translator.translate(TEXTS, **options)
        agreed: DecodingOptions = {**options, "consensus": True}
        assert translator.translate(TEXTS, **agreed) == without


def test_it_is_what_attention_is_shown_of(translator: Translator) -> None:
    shown = [translator.attention("a cat", consensus=consensus).target_text for consensus in (True, False)]
    assert shown == [translator.translate("a cat", consensus=consensus).text for consensus in (True, False)]
