"""Tags placed by word alignment: by hand with given weights, as a law for any weights, and with a trained model."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from transduce.core import has_core
from transduce.data.formats import Selection
from transduce.documents.filling import copies_tags, document_of, fill_at_once
from transduce.documents.kinds import FORMAT_OF_ENDING
from transduce.inspection.tokens import tokens_of_ids
from transduce.model_directory import find_model, load_model
from transduce.text.placeholders import RESERVED, Protected, protect, restore
from transduce.translator import Translator
from transduce.translator.tag_placing import TAG, Attention, with_tags, with_tight_tags, without_tags

needs_core = pytest.mark.skipif(not has_core(), reason="the C++ core was not built, for want of a compiler")
PAIR = Selection("en", "de")
DOCUMENTS = {
    "html": (
        "<p>The <b>red car</b> belongs to my <a href='x'>brother</a>.</p>",
        "<p>Das <b>rote Auto</b> gehört meinem <a href='x'>Bruder</a>.</p>",
    ),
    "po": (
        'msgid "The <b>red car</b> belongs to my brother."\nmsgstr ""\n',
        '"Das <b>rote Auto</b> gehört meinem Bruder."',
    ),
    "xlf": (
        (
            "<xliff version='1.2'><file source-language='en' target-language='de'><body><trans-unit id='1'><source>My "
            "<g id='1'>brother</g> works in a <g id='2'>bank</g>.</source></trans-unit></body></file></xliff>"
        ),
        "Mein <g id='1'>Bruder</g> arbeitet in einer <g id='2'>Bank</g>.",
    ),
    "md": ("It costs *ten dollars*.\n", "Es kostet *zehn Dollar*.\n"),
}
TOKENIZERS = load_model(find_model("en-de")).tokenizers


def leaning(lexicon: Mapping[str, str]) -> Attention:
    """Return weights by which each German word leans on its English word, and other words on all tokens alike."""

    def attention(source: Sequence[int], target: Sequence[int]) -> NDArray[np.float32]:
        weights_TS = np.full((len(target), len(source)), 1 / len(source), dtype=np.float32)
        for row, german in zip(weights_TS, words_of_tokens(target), strict=True):
            if german in lexicon:
                row[:] = [english == lexicon[german] for english in words_of_tokens(source)]
        return weights_TS

    return attention


def words_of_tokens(ids: Sequence[int]) -> list[str]:
    """Return the word that each token belongs to."""
    text, tokens = tokens_of_ids(TOKENIZERS.target, ids, originals=())
    spans: dict[int | None, str] = {}
    for token in tokens:
        spans[token.word] = spans.get(token.word, "") + text[token.start : token.end]
    return [spans[token.word].strip() for token in tokens]


def placed(source: str, output: str, lexicon: Mapping[str, str] | Attention) -> str:
    attention = leaning(lexicon) if isinstance(lexicon, Mapping) else lexicon
    sentence = without_tags(Protected(source, ()), stand_ins={})
    return with_tags(sentence, TOKENIZERS.encode_targets([output])[0], TOKENIZERS, attention)


@pytest.mark.parametrize(
    ("source", "output", "expected"),
    [
        ("Is it <b>42</b>?", "Ist es <b>42 </b>?", "Ist es <b>42</b>?"),
        ("Is it <b>42</b> now?", "Ist es <b>42 </b>jetzt?", "Ist es <b>42</b> jetzt?"),
        ("Is it <b>42</b> now?", "Ist es<b> 42</b> jetzt?", "Ist es <b>42</b> jetzt?"),
        ("Is it <b>42 </b>now?", "Ist es <b>42 </b>jetzt?", "Ist es <b>42 </b>jetzt?"),  # as in the source
        ("Is it <b> 42</b>?", "Ist es <b> 42</b>?", "Ist es <b> 42</b>?"),
        ("One<br/>two {n}", "Eins <br/> zwei {n}", "Eins <br/> zwei {n}"),  # only tags that enclose
    ],
)
def test_tags_enclose_no_space_that_those_of_the_source_do_not(source: str, output: str, expected: str) -> None:
    protected = protect(source)
    written = output
    for symbol, original in zip(RESERVED, protected.originals, strict=False):
        written = written.replace(original, symbol)
    assert restore(with_tight_tags(written, protected), protected.originals) == expected


SAW = {"Gestern": "yesterday", "sah": "saw", "ich": "I", "ein": "a", "rotes": "red", "Auto": "car"}
TURN = {"Biegen": "Turn", "links": "left", "ab": "Turn", "und": "and", "gehen": "go", "weiter": "go"}


@pytest.mark.parametrize(
    ("source", "output", "lexicon", "expected"),
    [
        ("I saw <b>a red car</b>.", "Ich sah ein rotes Auto.", SAW, "Ich sah <b>ein rotes Auto</b>."),
        (
            "I saw a <a href='x'>red car</a> <em>yesterday</em>.",
            "Gestern sah ich ein rotes Auto.",
            SAW,
            "<em>Gestern</em> sah ich ein <a href='x'>rotes Auto</a>.",
        ),
        ("I saw a <b><i>red</i> car</b>.", "Ich sah ein rotes Auto.", SAW, "Ich sah ein <b><i>rotes</i> Auto</b>."),
        ("I saw a <b>red <i>car</i></b>.", "Ich sah ein rotes Auto.", SAW, "Ich sah ein <b>rotes <i>Auto</i></b>."),
        ('I saw a <b>"red"</b> car.', 'Ich sah ein "rotes" Auto.', SAW, 'Ich sah ein <b>"rotes"</b> Auto.'),
        ("I saw a <b>red </b>car.", "Ich sah ein rotes Auto.", SAW, "Ich sah ein <b>rotes </b>Auto."),
        ("Turn left<x/> and go.", "Biegen links ab und gehen weiter.", TURN, "Biegen links<x/> ab und gehen weiter."),
        ("Turn left <x/> and go.", "Biegen links ab und gehen weiter.", TURN, "Biegen links ab <x/> und gehen weiter."),
        ("Turn <br/>left.", "Links biegen.", {"Links": "left"}, "<br/>Links biegen."),
        ("Go <bx id='1'/>left<ex id='1'/>.", "Links gehen.", {"Links": "left"}, "<bx id='1'/>Links<ex id='1'/> gehen."),
        ("20 m<sup>2</sup> <b>big</b>", "20 m groß", {"groß": "big"}, "20 m<sup>2</sup> <b>groß</b>"),
        ("Go <i></i>left.", "Links gehen.", {"Links": "left"}, "<i></i>Links gehen."),
        ("My <b>e-mail</b>", "Meine E-Mail", {"Meine": "My", "E": "e", "Mail": "mail"}, "Meine <b>E-Mail</b>"),
        ("to <b>Boston</b> now", "jetzt nach Boston", {"nach": "Boston", "Boston": "to"}, "jetzt nach <b>Boston</b>"),
        ("</b> He is old.", "Er ist alt.", {"Er": "He"}, "</b> Er ist alt."),
        ("He is old <b>", "Er ist alt", {"alt": "old"}, "Er ist alt <b>"),
    ],
)  # fmt: skip
def test_tags_go_around_the_words_that_lean_on_theirs(
    source: str, output: str, lexicon: Mapping[str, str], expected: str
) -> None:
    assert placed(source, output, lexicon) == expected


def test_a_word_that_leans_elsewhere_for_the_most_part_stays_outside() -> None:
    def attention(source: Sequence[int], target: Sequence[int]) -> NDArray[np.float32]:
        shares = {"um": 0.4, "neun": 0.9, "Uhr": 0.7}
        rows = [[shares.get(german, 0.0), 1 - shares.get(german, 0.0)] for german in words_of_tokens(target)]
        nine, leaves = (words_of_tokens(source).index(word) for word in ("nine", "leaves"))
        weights_TS = np.zeros((len(target), len(source)), dtype=np.float32)
        weights_TS[:, [nine, leaves]] = rows
        return weights_TS

    assert placed("It leaves at <b>nine</b>.", "Er geht um neun Uhr.", attention) == "Er geht um <b>neun Uhr</b>."


def test_very_many_tags_go_to_the_end_in_no_time() -> None:
    deep = "<b>" * 2000 + "red" + "</b>" * 2000
    assert placed(deep, "rot", {}) == "rot" + "<b></b>" * 2000


def tagged(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.builds(
        lambda name, own: f"<{name}>{''.join(own)}</{name}>", st.sampled_from("bi"), st.lists(inner, max_size=4)
    )


@given(
    st.lists(
        st.recursive(st.sampled_from(["red", "car, ", "Boston", " ", ".", "2", "<x/>", "<br/> "]), tagged), max_size=5
    ),
    st.sampled_from(["Das rote Auto, das in Boston steht.", "Boston", "", "...", "E-Mail nach Boston-Süd!"]),
    st.integers(0, 2**32 - 1),
)
def test_whatever_the_weights_all_tags_come_back_nested_and_the_text_stays(
    parts: list[str], output: str, seed: int
) -> None:
    def attention(source: Sequence[int], target: Sequence[int]) -> NDArray[np.float32]:
        drawn = np.random.default_rng(seed).random((len(target), len(source)), dtype=np.float32) ** 8
        weights_TS: NDArray[np.float32] = drawn / drawn.sum(axis=1, keepdims=True)
        return weights_TS

    source = "".join(parts)
    found = placed(source, output, attention)
    tags = [tag[0] for tag in TAG.finditer(found)]
    wanted = [tag[0] for tag in TAG.finditer(source)]
    assert sorted(tags) == sorted(wanted)
    opened: list[str] = []
    for tag in tags:
        if tag.startswith("</"):
            assert opened.pop() == tag.replace("/", "")
        elif not tag.endswith("/>"):
            opened.append(tag)
    assert re.sub(r"2|\s", "", TAG.sub("", found)) == re.sub(r"\s", "", output)


@needs_core
@pytest.mark.parametrize("ending", ["html", "po", "xlf", "md"])
def test_a_model_that_copies_no_tags_fills_documents_with_tags_in_the_right_places(
    ending: str, forgetful: Translator
) -> None:
    before, after = DOCUMENTS[ending]
    document = document_of(before.encode(), FORMAT_OF_ENDING[f".{ending}"], path=Path("x"), selection=PAIR)
    kind = FORMAT_OF_ENDING[f".{ending}"]
    document = replace(document, copies_tags=copies_tags(document, kind, forgetful))
    content, report = fill_at_once(document, kind, lambda texts, _: forgetful.translate(texts))
    assert after in content.decode()
    assert report.left == []
