"""Placeholders, URLs, tags and numbers come back, with a model that saw no placeholders in training."""

import re
from dataclasses import replace

import pytest

import transduce
from transduce.decoding.hypothesis import Hypothesis
from transduce.model_directory import bundled_models
from transduce.text.numbers import missing_numbers
from transduce.text.placeholders import restore
from transduce.text.sentence_form import in_small_letters, keep_form
from transduce.translator import Glossary, Translator
from transduce.translator.requirements import Requirements, SecondSearch
from transduce.translator.searching import Sentence

LINES = [
    "Please open {name} and visit https://example.org/x now.",
    "You have %d new messages.",
    "Write to info@example.org if you need help.",
    "The file {0} is larger than {1}.",
    "My friend {name} lives in {city}, and {name} is old.",
    "Click <b>here</b> now.",
    "({n})",
    "%d places",
    "${user} has joined the room. Welcome, {{title}}!",
]
PLACEHOLDER = re.compile(r"https?://\S+?(?=[.,!?]?(?:\s|$))|[\w.]+@[\w.]+\w|%\w|\$?\{\{?\w+\}\}?|</?b>")


@pytest.fixture(scope="module")
def translator(forgetful: Translator) -> Translator:
    return forgetful


def test_every_placeholder_comes_back_once_with_space_around_it(translator: Translator) -> None:
    reported = translator.translate(LINES, keep_placeholders="report")
    assert sum(bool(own.missing) for own in reported) >= 6, "without a second search they get lost; else nothing shows"
    for line, own in zip(LINES, translator.translate(LINES), strict=True):
        assert sorted(PLACEHOLDER.findall(own.text)) == sorted(PLACEHOLDER.findall(line)), own.text
        assert own.missing == own.surplus == ()
        assert translator.calibration is not None
        assert not any(word in own.text for word in translator.calibration.stand_ins), own.text
        assert not re.search(r"\w(?:https|\{|%|\$)|[}]\w|\S<b>\w+\s</b>", own.text), own.text
    assert all(own.missing == () for own in translator.translate(LINES, keep_placeholders="off"))


def test_words_around_a_placeholder_are_translated_as_around_a_name(translator: Translator) -> None:
    found = translator.translate(LINES[0]).text
    assert {"bitte", "öffnen", "besuchen"} <= set(found.lower().replace(",", "").split()), found
    assert found.index("{name}") < found.index("https://example.org/x")
    assert translator.translate("Welcome to {city}!").text == "Willkommen in {city}!"


def test_an_output_that_has_a_stand_in_once_more_in_other_tokens_is_dropped(translator: Translator) -> None:
    tokenizers = translator.tokenizers
    target = tokenizers.target
    protected = tokenizers.protect("%d places")
    sentence = Sentence(0, 0, protected, tuple(tokenizers.encode_source(protected.text)), key=0)
    second = SecondSearch(Requirements(sentence, keeps_placeholders=True), tokenizers, ("Boston",))
    rest = (*target.encode("Orte"), target.special.end)
    once = Hypothesis((*target.encode("Boston"), *rest), 0.0, 0.0, is_finished=True)
    restored = second.with_symbols(once)
    assert restored is not None
    assert restore(target.decode(restored.tokens), protected.originals) == "%d Orte"
    letters = [token for letter in "oston" for token in target.encode_inside(letter)]
    twice = replace(once, tokens=(*target.encode("B"), *letters, *once.tokens))
    assert target.decode(twice.tokens) == "Boston Boston Orte"
    assert second.with_symbols(twice) is None
    garbled = replace(once, tokens=(*once.tokens[:-1], *target.encode("Bostern"), target.special.end))
    assert second.with_symbols(garbled) is None


def test_every_alternative_has_the_placeholders_and_company_changes_nothing(translator: Translator) -> None:
    together = translator.translate(LINES, alternatives=3)
    for line, own in zip(LINES, together, strict=True):
        assert own == translator.translate(line, alternatives=3)
        for alternative in own.alternatives:
            assert sorted(PLACEHOLDER.findall(alternative.text)) == sorted(PLACEHOLDER.findall(line))


def test_a_closing_tag_comes_after_its_opening_tag(translator: Translator) -> None:
    texts = ["Open the <b>red</b> <i>door</i>, please.", "<b>Yes</b> and <b>no</b>."]
    for own in translator.translate(texts, alternatives=4):
        for alternative in own.alternatives:
            tags = re.findall(r"</?[bi]>", alternative.text)
            depths = [sum(1 if tag[1] != "/" else -1 for tag in tags[: n + 1]) for n in range(len(tags))]
            assert min(depths) >= 0 == depths[-1], alternative.text


def test_alternatives_with_tags_are_those_without_tags(translator: Translator) -> None:
    found = translator.translate("I saw a <b>red car</b> yesterday.", alternatives=3)
    without = translator.translate("I saw a red car yesterday.", alternatives=3)
    assert [re.sub("</?b>", "", own.text) for own in found.alternatives] == [own.text for own in without.alternatives]
    assert len(without.alternatives) == 3


def test_numbers_are_searched_for_and_reported_if_they_are_lost(translator: Translator) -> None:
    texts = [
        "Can we meet on February the 28th, around 3:00 p.m.?",
        "I have 2 cats.",
        "It is 9 o'clock.",
        "We met at 7.",
    ]
    reported = translator.translate(texts, keep_placeholders="report")
    for text, own, kept in zip(texts, reported, translator.translate(texts), strict=True):
        assert own.missing_numbers == missing_numbers(text, own.text)
        assert ("numbers" in own.doubts) == bool(own.missing_numbers)
        assert len(kept.missing_numbers) <= len(own.missing_numbers)
        assert translator.translate(text, keep_placeholders="off").missing_numbers == ()
    assert any(own.missing_numbers for own in reported), "else nothing is shown"


def test_samples_are_only_reported(translator: Translator) -> None:
    found = translator.translate(LINES[0], sample=True)
    assert found.missing


def test_a_term_replaces_the_word_that_the_model_would_write(translator: Translator) -> None:
    glossary = Glossary((("dog", "Vierbeiner"), ("car", "Kraftfahrzeug")))
    found = translator.translate(["The dog barks.", "My car is red."], glossary=glossary)
    assert "Hund" not in found[0].text
    assert found[1].text == "Mein Kraftfahrzeug ist rot."
    assert "Vierbeiner" in found[0].text


@pytest.mark.parametrize("name", sorted(bundled_models()))
def test_a_sentence_in_capitals_has_the_translation_of_small_letters_in_capitals(name: str) -> None:
    own = transduce.load(name, threads=1)
    shouted = {
        "en": "OPEN {name}, THE DOOR IS RED. WHERE ARE MY KEYS?",
        "de": "ÖFFNE {name}, WO IST MEIN HUND? ER IST ROT.",
    }
    text = shouted[own.languages.source or ""]
    read = [in_small_letters(sentence, own.tokenizers.source.encode) for sentence in own.sentences_of(text)]
    calm, loud = own.translate([" ".join(read), text])
    assert loud.text.replace("{NAME}", "{name}") == calm.text.upper().replace("{NAME}", "{name}")
    assert "{name}" in loud.text
    spelled = own.translate(text, keep_form=False)
    assert spelled.alternatives[0].tokens != loud.alternatives[0].tokens == calm.alternatives[0].tokens
    first = loud.alternatives[0].sentences[0]
    assert own.attention(text[first.start : first.end], target=first.tokens).source.text == read[0]


def test_a_label_has_no_full_stop_and_a_confidence(translator: Translator) -> None:
    with_form, without = translator.translate("I am hungry"), translator.translate("I am hungry", keep_form=False)
    assert with_form.text == keep_form("I am hungry", without.text, language="de")
    assert not with_form.text.endswith(".")
    assert with_form.confidence is not None
    assert 0 < with_form.confidence < 1
