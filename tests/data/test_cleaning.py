import pytest

from transduce.data.cleaning import LISTED, Dropped, Rule, dropped_list, length_fault, rules_for, text_fault
from transduce.data.config import DataConfig
from transduce.text.normalization import normalize

ALL = frozenset(Rule)


def fault(source: str, target: str, rules: frozenset[Rule] = ALL) -> Rule | None:
    return text_fault(source, target, normalized=(normalize(source), normalize(target)), rules=rules)


@pytest.mark.parametrize(
    ("source", "target", "rule"),
    [
        ("", "b", Rule.EMPTY),
        ("a", " \u00a0\u2028\t", Rule.EMPTY),
        ("a\x92s", "b", Rule.CONTROL_CHARACTERS),
        ("a", "b\x00", Rule.CONTROL_CHARACTERS),
        ("Berlin", " Berlin ", Rule.COPY),
        ("a\tb\x0bc\x85d\u2028e", "white space of every kind is no damage", None),
        ("a", "b", None),
    ],
)
def test_a_pair_is_judged_by_its_text(source: str, target: str, rule: Rule | None) -> None:
    assert fault(source, target) is rule
    if rule is not None:
        assert fault(source, target, ALL - {rule}) is not rule, "a rule that is off drops nothing"


@pytest.mark.parametrize(
    ("source", "target", "rule"),
    [(10, 10, None), (11, 3, Rule.TOO_LONG), (3, 11, Rule.TOO_LONG), (2, 7, Rule.LENGTH_RATIO), (2, 6, None)],
)
def test_a_pair_is_judged_by_its_lengths(source: int, target: int, rule: Rule | None) -> None:
    config = DataConfig(max_length=10, max_length_ratio=3.0)
    assert length_fault(source, target, config=config, rules=ALL) is rule
    assert length_fault(source, target, config=config, rules=frozenset()) is None


def test_only_what_is_safe_is_on_by_default() -> None:
    assert rules_for("train", DataConfig()) == {Rule.EMPTY, Rule.TOO_LONG, Rule.CONTROL_CHARACTERS}
    assert rules_for("valid", DataConfig()) == {Rule.EMPTY, Rule.TOO_LONG}
    assert rules_for("test", DataConfig()) == frozenset()


@pytest.mark.parametrize("rule", Rule)
def test_every_rule_has_a_switch(rule: Rule) -> None:
    switches = {
        Rule.EMPTY: "drop_empty",
        Rule.CONTROL_CHARACTERS: "drop_control_characters",
        Rule.COPY: "drop_copies",
        Rule.DUPLICATE: "drop_duplicates",
        Rule.TOO_LONG: "drop_too_long",
        Rule.LENGTH_RATIO: "drop_length_ratio",
    }
    assert rule in rules_for("train", DataConfig.model_validate({switches[rule]: True}))
    assert rule not in rules_for("train", DataConfig.model_validate({switches[rule]: False}))


def test_counts_are_exact_and_the_list_is_bounded_and_says_so() -> None:
    dropped = Dropped()
    for number in range(LISTED + 7):
        dropped.add(Rule.EMPTY, origin=f"a.en:{number}", source="", target="line\nbreak\ttab")
    dropped.add("fuzzy", origin="a.po:3", source="x" * 5000, target="y")
    assert dropped.counts == {"empty": LISTED + 7, "fuzzy": 1}
    lines = dropped_list({"train": Dropped.from_json(dropped.as_json())}).splitlines()
    assert len(lines) == 1 + LISTED + 1 + 1
    assert lines[1] == "train\ta.en:0\tempty\t\tline break tab"
    assert lines[-1] == "train\t…\tempty\tand 7 more\t"
    assert all(len(line) < 1000 for line in lines)
