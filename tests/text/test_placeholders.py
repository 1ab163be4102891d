import pytest
from hypothesis import given
from hypothesis import strategies as st

from transduce.text.normalization import normalize
from transduce.text.placeholders import (
    RESERVED,
    missing,
    protect,
    protect_pair,
    restore,
    split_at_placeholders,
    surplus,
)

ZERO, ONE, TWO = RESERVED[:3]
PLACEHOLDERS = (
    *("%d%%", "%.1f%%", "%%", "50%%", "%s", "%d", "%1$s", "%(name)s", "%.2f", "%5d", "%lu", "%@", "%-10s"),
    *(
        "{name}",
        "{0}",
        "{}",
        "{user.name}",
        "{price:.2f}",
        "{{x}}",
        "{{ user.name | upper }}",
        "${x}",
        "%{x}",
        "#{x}",
        "$1",
    ),
    *("https://example.org/a?b=c&d=%20#e", "http://localhost:8080/", "ftp://example.org/f.txt", "www.example.org/x"),
    *("https://example.org/wiki/Thing_(other)", "me@example.org", "first.last+tag@mail.example.co.uk", "mailto:a@b.de"),
    *("<b>", "</b>", "<br/>", "<br />", '<a href="https://example.org/?q=1">', "<x id='1'/>", "<g id=3>", "<my-tag>"),
)
ORDINARY = (
    *(
        "100 % sure",
        "100% des Preises",
        "a 50 %ige Chance",
        "100%s",
        "it costs $12",
        "it costs $1.50",
        "{ }",
        "{two words}",
    ),
    *(
        "a < b and c > d",
        "if a <b and c> d",
        "I <3 you",
        "me @ home",
        "@name",
        "3 * {4, 5}",
        "http://",
        "www.",
        "Ende.www",
        "5% Rabatt",
    ),
)
MIXED = st.lists(st.one_of(st.sampled_from([*PLACEHOLDERS, *ORDINARY, *RESERVED, " ", "."]), st.text(max_size=3))).map(
    "".join
)


@pytest.mark.parametrize("placeholder", PLACEHOLDERS)
@pytest.mark.parametrize("frame", ["{}", "See {}.", "({}),", "„{}“ and more", "{}!", "Ä {}: x"])
def test_a_placeholder_becomes_one_symbol_whatever_stands_around_it(placeholder: str, frame: str) -> None:
    before, after = frame.split("{}")
    protected = protect(before + placeholder + after)
    assert protected.text == before + ZERO + after
    assert protected.originals == (placeholder,)


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert protect(text).text == text


@given(MIXED)
def test_restoring_undoes_protecting(text: str) -> None:
    protected = protect(text)
    assert restore(protected.text, protected.originals) == text
    assert missing(protected, protected.text) == surplus(protected, protected.text) == ()


@given(MIXED, MIXED)
def test_restoring_undoes_protecting_a_pair(source: str, target: str) -> None:
    pair = protect_pair(source, target)
    assert restore(pair.source, pair.originals) == source
    assert restore(pair.target, pair.originals) == target


@given(st.lists(st.sampled_from(PLACEHOLDERS)), st.lists(st.sampled_from(PLACEHOLDERS)))
def test_a_pair_shares_its_symbols_and_has_none_without_a_partner(source: list[str], target: list[str]) -> None:
    pair = protect_pair(" ".join(source), " ".join(target))
    assert set(pair.source) & set(RESERVED) == set(pair.target) & set(RESERVED)
    assert set(pair.originals) <= set(source) & set(target)
    assert len(pair.originals) == min(len(set(source) & set(target)), len(RESERVED))


@given(MIXED)
def test_every_other_part_of_a_split_text_is_a_placeholder(text: str) -> None:
    parts, protected = split_at_placeholders(text), protect(text)
    assert "".join(parts) == text
    if not set(text) & set(RESERVED):
        assert tuple(dict.fromkeys(parts[1::2])) == protected.originals + protected.unprotected


def test_symbols_are_numbered_in_order_and_the_same_original_keeps_its_symbol() -> None:
    pair = protect_pair("{a} saw <b>{a}</b>", "<b>{a}</b> sah {c}{a}")
    assert pair.originals == ("{a}", "<b>", "</b>")
    assert pair.source == f"{ZERO} saw {ONE}{ZERO}{TWO}"
    assert pair.target == f"{ONE}{ZERO}{TWO} sah {{c}}{ZERO}"


def test_symbols_pass_through_normalisation() -> None:
    text = "x".join(RESERVED)
    assert normalize(text) == text


def test_a_text_that_holds_our_symbols_gets_them_back() -> None:
    text = f"{RESERVED[7]} and {RESERVED[2]}"
    protected = protect(text)
    assert protected.text == f"{ZERO} and {ONE}"
    assert restore(protected.text, protected.originals) == text
    pair = protect_pair(text, "nothing")  # without a partner, too: it must not pass for a symbol of ours
    assert pair.originals == (RESERVED[7], RESERVED[2])


def test_what_is_beyond_the_last_symbol_stays_text_and_is_still_missed() -> None:
    text = " ".join(f"{{v{number}}}" for number in range(len(RESERVED) + 2))
    protected = protect(text)
    assert len(protected.originals) == len(RESERVED)
    assert protected.unprotected == ("{v16}", "{v17}")
    assert protected.text.endswith("{v16} {v17}")
    assert missing(protected, protected.text.replace("{v17}", "v 17")) == ("{v17}",)


def test_a_symbol_that_stands_for_nothing_is_dropped_with_its_space() -> None:
    assert restore(f"a {TWO} b {ZERO} {ONE}", ["%s"]) == "a b %s"
    assert restore(f"{ONE} b", []) == "b"


def test_what_was_lost_and_what_was_repeated_is_told() -> None:
    protected = protect("%s of %d, %s")
    assert missing(protected, f"{ZERO}") == ("%s", "%d")
    assert surplus(protected, f"{ZERO} {ZERO} {ZERO} {ONE} {TWO}") == ("%s",)


@given(MIXED)
def test_boundaries_lead_back_into_the_original(text: str) -> None:
    protected = protect(text)
    boundaries = protected.boundaries()
    assert boundaries[-1] == len(text)
    for index, character in enumerate(protected.text):
        original = text[boundaries[index] : boundaries[index + 1]]
        assert original == restore(character, protected.originals)


@pytest.mark.parametrize(
    "unit",
    [
        "a@",
        "a.",
        "{",
        "{{a",
        "{a:",
        "<a ",
        "<a b='",
        "b=c ",
        "http://",
        "http://.",
        "(",
        "%",
        "%1",
        "%(",
        "$",
        "www.",
        "x",
        ";",
    ],
)
@pytest.mark.parametrize("start", ["", "http://a", "<a ", "a@b", "{{"])
def test_hostile_text_comes_back(start: str, unit: str) -> None:
    # With a pattern that backtracks, one of these would take hours.
    text = start + unit * 20_000
    protected = protect(text)
    assert restore(protected.text, protected.originals) == text
