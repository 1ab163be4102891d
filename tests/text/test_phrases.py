"""Many phrases found at once: what a search one by one finds, in a time that does not grow with their number."""

import time

from hypothesis import given
from hypothesis import strategies as st

from transduce.text.phrases import Phrases
from transduce.text.placeholders import missing, protect
from transduce.translator.terminology import Glossary

TEXTS = st.text(alphabet="ab ", max_size=30)


@given(st.lists(st.text(alphabet="ab ", min_size=1, max_size=5)), TEXTS, st.integers(1, 3))
def test_the_first_and_then_the_longest_phrase_that_fits_is_found(phrases: list[str], text: str, step: int) -> None:
    found, start = [], 0
    while start < len(text):
        ends = [start + len(phrase) for phrase in phrases if text.startswith(phrase, start)]
        end = max((end for end in ends if end % step == 0), default=start)
        if end > start:
            found.append((start, end))
        start = max(end, start + 1)
    assert list(Phrases(phrases).found(text, fits=lambda start, end: end % step == 0)) == found


def test_a_glossary_of_twenty_thousand_terms_takes_hardly_longer_than_one_of_two_hundred() -> None:
    text = " ".join(f"w{n}x" for n in range(3_000))
    few, many = (Glossary(tuple((f"w{3 * n}x", "t") for n in range(count))) for count in (200, 20_000))
    assert len(few.occurrences(text)) == 200
    assert len(many.occurrences(text)) == 1_000
    ratios = []
    for _ in range(5):
        times = []
        for glossary in (few, many):
            began = time.process_time()
            glossary.occurrences(text)
            times.append(max(time.process_time() - began, 1e-4))
        ratios.append(times[1] / times[0])
    assert min(ratios) < 10, ratios  # a pattern of all terms took a hundred times as long


def test_many_distinct_placeholders_take_linear_time() -> None:
    def seconds(count: int) -> float:
        protected = protect(" ".join(f"{{a{n}}}" for n in range(count)))
        began = time.process_time()
        assert len(missing(protected, protected.text[: len(protected.text) // 2])) > count // 3
        return time.process_time() - began

    seconds(500)
    assert min(seconds(16_000) / max(seconds(2_000), 1e-3) for _ in range(3)) < 24  # quadratic would be 64


def test_terms_match_without_case_across_white_space_and_as_whole_words() -> None:
    glossary = Glossary((("Straße", "road"), ("new york", "NY"), ("is", "x"), ("C++", "cpp"), ("猫", "cat")))
    found = glossary.occurrences("STRASSE in New \n York: ıs IS this? C++11 und C++, 黒猫です")
    assert found == [
        ("STRASSE", "road"),
        ("New \n York", "NY"),
        ("IS", "x"),
        ("C++", "cpp"),
        ("C++", "cpp"),
        ("猫", "cat"),
    ]
