"""Enforced terms through the whole translator. The network is real but untrained: it wants no term, and gets them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch

from transduce.decoding.constraints import TermPlace
from transduce.errors import ConfigError
from transduce.model import ModelConfig, Transformer
from transduce.model_directory import Description, Languages, save_model
from transduce.networks.stepwise import Ids, LogProbabilities
from transduce.text.bpe_tokenizer import BpeTokenizer
from transduce.text.tokenizer_pair import TokenizerPair
from transduce.translator import Glossary, Translator
from transduce.translator.consensus import agreements
from transduce.translator.requirements import constraint_of
from transduce.translator.terminology import count_terms
from transduce.translator.translator import WantedPrecision

LINES = ["the dog runs.", "a cat sleeps here", "der Hund läuft.", "eine Katze schläft hier, im „Haus“"] * 3
TERMS = (("dog", "Köter"), ("cat", "eine Katze"), ("here", "hier"), ("C++", "C++"))
TEXTS = [
    "the dog runs.",
    "a bird sings",
    "the dog sees the dog, a cat and C++ here",
    "nothing",
    "here. And <b>dog</b> at https://dog.example/dog",
    "a cat",
]


class Counting:
    """A stepper that counts the rows it is asked about."""

    def __init__(self, inner: Any) -> None:  # noqa: ANN401
        self.inner = inner
        self.rows = 0
        self.tokens, self.source_padding = inner.tokens, inner.source_padding
        self.longest_target, self.start, self.select = inner.longest_target, inner.start, inner.select

    def step(self, state: Any, tokens_BW: Ids) -> LogProbabilities:  # noqa: ANN401
        self.rows += tokens_BW.size
        log_probabilities_BWV: LogProbabilities = self.inner.step(state, tokens_BW)
        return log_probabilities_BWV


@contextmanager
def counted(translator: Translator) -> Iterator[Counting]:
    inner = translator.stepper
    counting = translator.stepper = Counting(inner)
    yield counting
    translator.stepper = inner


@pytest.fixture(scope="module")
def load(tmp_path_factory: pytest.TempPathFactory) -> Callable[[WantedPrecision], Translator]:
    tokenizer = BpeTokenizer.learn(LINES, vocabulary_size=400)
    torch.manual_seed(3)
    config = ModelConfig(vocabulary_size=tokenizer.vocabulary_size, d_model=32, heads=2, d_ff=32, layers=1, dropout=0)
    description = Description(
        architecture=config,
        languages=Languages(source="en", target="de"),
        decoding={"extra_length": 20, "keep_form": False},
    )
    parameters = {name: parameter.detach() for name, parameter in Transformer(config).named_parameters()}
    folder = tmp_path_factory.mktemp("models") / "model"
    save_model(folder, description, parameters, tokenizers=TokenizerPair.shared(tokenizer), card="")

    @cache
    def load(precision: WantedPrecision) -> Translator:
        return Translator.load(folder, precision=precision, threads=1)

    return load


@pytest.mark.parametrize("precision", ["float32", "bf16", "int8"])
def test_every_term_appears_as_often_as_it_is_wanted_in_every_alternative(
    load: Callable[[WantedPrecision], Translator], precision: WantedPrecision
) -> None:
    glossary = Glossary(TERMS)
    for translation in load(precision).translate(TEXTS, glossary=glossary, alternatives=2):
        wanted = glossary.wanted(translation.source)
        assert all(count_terms(wanted, own.text) == len(wanted) for own in translation.alternatives)
        assert not set(translation.missing).intersection(target for _, target in TERMS)
    assert glossary.wanted(TEXTS[2]) == ["Köter", "Köter", "eine Katze", "C++", "hier"]


def test_sentences_without_terms_come_out_bit_for_bit_as_without_a_glossary_and_cost_no_more(
    load: Callable[[WantedPrecision], Translator],
) -> None:
    translator = load("float32")
    with counted(translator) as plain:
        without = translator.translate(TEXTS)
    with counted(translator) as twice:
        enforced = translator.translate(TEXTS, glossary=Glossary(TERMS))
    assert [ours == theirs for ours, theirs in zip(enforced, without, strict=True)] == [False, True] * 2 + [False] * 2
    assert twice.rows > plain.rows
    with counted(translator) as once:
        assert translator.translate(TEXTS, glossary=Glossary((("absent", "fehlt"),))) == without
    assert once.rows == plain.rows


def test_a_translation_that_has_its_terms_already_is_left_as_it_is(
    load: Callable[[WantedPrecision], Translator],
) -> None:
    translator = load("float32")
    with counted(translator) as plain:
        without = translator.translate("the dog runs.")
    term = without.text.split()[0]
    with counted(translator) as enforced:
        assert translator.translate("the dog runs.", glossary=Glossary((("dog", term),))) == without
    assert enforced.rows == plain.rows


def test_the_best_translation_stays_the_best_where_only_its_alternatives_lack_a_term(
    load: Callable[[WantedPrecision], Translator],
) -> None:
    translator = load("float32")
    without = translator.translate("the dog runs.", alternatives=4)
    texts = [own.text for own in without.alternatives]
    term = next(word for word in texts[0].split() if any(not count_terms([word], text) for text in texts[1:]))
    for form in (term, term.swapcase()):  # search enforces a form exactly; what is there already may have another case
        found = translator.translate("the dog runs.", alternatives=4, glossary=Glossary((("dog", form),)))
        assert found.alternatives[0] == without.alternatives[0]
        assert len({own.tokens for own in found.alternatives}) == len(found.alternatives)
        assert all(count_terms([form], own.text) for own in found.alternatives)
        assert list(found.alternatives[1:]) == sorted(found.alternatives[1:], key=lambda own: -own.score)


def test_consensus_is_sought_among_the_outputs_that_have_the_terms(
    load: Callable[[WantedPrecision], Translator],
) -> None:
    translator, glossary, text = load("float32"), Glossary(TERMS), TEXTS[2]
    options: dict[str, Any] = {"beam": 8, "length_penalty": 4.0}  # so that an untrained network's outputs all count
    offered = translator.translate(text, glossary=glossary, alternatives=8, **options).alternatives
    shares = agreements([own.text for own in offered]) @ np.exp([2 * own.score for own in offered])
    expected = [own for _, own in sorted(zip(shares, offered, strict=True), key=lambda pair: -pair[0])]
    assert expected[0] != offered[0], "else nothing is shown"
    found = translator.translate(text, glossary=glossary, alternatives=3, consensus=True, **options)
    assert list(found.alternatives) == expected[:3]
    wanted = glossary.wanted(text)
    assert count_terms(wanted, found.text) == len(wanted)


def test_company_changes_no_text(load: Callable[[WantedPrecision], Translator]) -> None:
    translator, glossary = load("float32"), Glossary(TERMS)
    together = translator.translate(TEXTS, glossary=glossary)
    assert [own.text for own in together] == [translator.translate(text, glossary=glossary).text for text in TEXTS]


def test_a_forced_beginning_stays_and_the_terms_follow(load: Callable[[WantedPrecision], Translator]) -> None:
    translator = load("float32")
    [found] = translator.translate_all(
        ["the dog runs."], translator.configure(), prefixes=["eine Katze"], glossary=Glossary(TERMS)
    )
    assert found.text.startswith("eine Katze")
    assert count_terms(["Köter"], found.text) == 1


def test_terms_without_room_are_missing_and_the_translation_is_the_one_without_them(
    load: Callable[[WantedPrecision], Translator],
) -> None:
    translator = load("float32")
    found = translator.translate("the dog runs.", glossary=Glossary(TERMS), maximum_length=2)
    assert found.missing == ("Köter",)
    assert found.alternatives == translator.translate("the dog runs.", maximum_length=2).alternatives


def test_terms_are_not_enforced_on_samples(load: Callable[[WantedPrecision], Translator]) -> None:
    with pytest.raises(ConfigError, match="enforced by beam search, not in samples"):
        load("float32").translate("the dog", glossary=Glossary(TERMS), sample=True)
    assert load("float32").translate("the dog", glossary=Glossary(TERMS, "preferred"), sample=True).text


def test_a_term_has_a_form_for_each_place_that_it_can_stand_in(
    load: Callable[[WantedPrecision], Translator],
) -> None:
    tokenizer = load("float32").tokenizers.target
    quote = tokenizer.encode("„")

    def forms(term: str) -> set[tuple[str, TermPlace, bool]]:
        return {
            (tokenizer.decode([*quote, *form.tokens]), form.begins_from, form.needs_edge_after)
            for form in constraint_of(tokenizer, term).forms
        }

    inside, edge, start = TermPlace
    assert forms("Hund") == {("„ Hund", inside, True), ("„Hund", edge, True)}
    assert forms("im Haus") == {("„ im Haus", inside, True), ("„im Haus", edge, True), ("„ Im Haus", start, True)}
    assert forms("C++") == {("„ C++", inside, False), ("„C++", edge, False)}
    assert forms("犬") == {("„ 犬", inside, False), ("„犬", inside, False)}
