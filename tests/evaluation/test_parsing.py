"""Labelled brackets by hand, by laws, and as PYEVALB counts them."""

import random

import pytest

from transduce.data.formats import Corpus, Selection
from transduce.errors import DataError
from transduce.evaluation.parsing import MEASURES, BracketMetric, linear_line, statistics_of
from transduce.evaluation.protocols import protocol_named
from transduce.evaluation.scores import score
from transduce.evaluation.significance import paired_bootstrap
from transduce.text.trees import ROOT, Tree, linear_form

GOLD = "(TOP (S (NP-SBJ (DT the) (NN cat)) (VP (VBZ sits) (PP (IN on) (NP (PRP it))) (PRT (RP down))) (. .)))"
# Gold brackets: S 0-6, NP 0-2, VP 2-6, PP 3-5, NP 4-5, ADVP 5-6 (PRT); the full stop counts in no span.
FLAT = "(TOP (S (NP (DT the) (NN cat)) (VP (VBZ sits) (IN on) (NN it) (ADVP (RP down)) (. .))))"
# Its brackets: S 0-6, NP 0-2, VP 2-6, ADVP 5-6. All match; one of seven tags is wrong.


def scores(outputs: list[str], references: list[str]) -> dict[str, float]:
    return {
        own.name: own.value
        for own in score(outputs, [references], protocol=protocol_named("parsing", target_language=None))
    }


def test_two_sentences_by_hand() -> None:
    both = [GOLD, GOLD]
    assert scores([FLAT, GOLD], both) == {
        "precision": pytest.approx(100.0),
        "recall": pytest.approx(100 * 10 / 12),
        "F1": pytest.approx(100 * 2 * 10 / (10 + 12)),
        "exact match": pytest.approx(50.0),
        "tagging accuracy": pytest.approx(100 * 13 / 14),
        "invalid output": 0.0,
    }


def test_a_wrong_label_and_a_wrong_span_do_not_match_and_a_bracket_matches_once() -> None:
    gold = "(TOP (S (NP (NN a) (NN b)) (VP (VB c))))"  # S 0-3, NP 0-2, VP 2-3
    output = "(TOP (S (S (NP (NN a)) (NN b)) (NX (VB c))))"  # S 0-3, S 0-2, NP 0-1, NX 2-3
    assert statistics_of(linear_line(output), linear_line(gold))[:3] == [1, 4, 3]
    assert statistics_of(linear_line("(TOP (S (S (S (NN a)))))"), linear_line("(TOP (S (S (NN a))))"))[:3] == [2, 3, 2]


def test_punctuation_is_what_the_treebank_tags_so_and_a_bracket_of_punctuation_alone_does_not_count() -> None:
    gold = linear_line("(TOP (S (PRN (, ,)) (NP (NN a)) (`` x) (NP (NN b) (. .)) ('' y)))")  # S 0-2, NP 0-1, NP 1-2
    assert statistics_of("(S (NP XX XX XX )NP (NP XX )NP XX XX )S", gold)[:3] == [3, 3, 3]


def test_tags_count_only_where_the_output_has_tags() -> None:
    assert "tagging accuracy" not in scores(["(NP XX XX )NP"], ["(TOP (NP (DT the) (NN cat)))"])
    assert scores(["(NP DT JJ )NP"], ["(TOP (NP (DT the) (NN cat)))"])["tagging accuracy"] == 50.0


@pytest.mark.parametrize("output", ["", "(S", "(S XX )S", "(S XX XX )NP", "(S XX XX XX )S", "(S (NP )NP XX XX )S"])
def test_invalid_output_finds_no_bracket_and_is_counted(output: str) -> None:
    gold = "(TOP (S (NN a) (NN b)))"
    found = scores([output, gold], [gold, gold])
    assert (found["invalid output"], found["recall"], found["precision"]) == (50.0, 50.0, 100.0)


def test_a_reference_without_tags_or_brackets_is_refused() -> None:
    with pytest.raises(DataError, match="This reference has XX for tags"):
        statistics_of("(S XX )S", "(S XX )S")
    with pytest.raises(DataError, match="This reference is no tree"):
        statistics_of("(S XX )S", "(S Das ist")


def test_a_difference_has_a_significance() -> None:
    differences = paired_bootstrap(
        [FLAT] * 20, [GOLD] * 20, [[GOLD] * 20], protocol=protocol_named("parsing", target_language=None), samples=50
    )
    assert [own.name for own in differences] == list(MEASURES)
    assert differences[0].system == pytest.approx(100.0)
    assert differences[0].is_significant


def random_tree(draw: random.Random, words: list[str]) -> Tree:
    """Return a tree without unary brackets, which PYEVALB would count once where a label repeats."""
    if len(words) == 1:
        return Tree(draw.choice(["NN", "VB", "DT"]), word=words[0])
    cuts = sorted(draw.sample(range(1, len(words)), draw.randint(1, min(2, len(words) - 1))))
    parts = [words[first:last] for first, last in zip([0, *cuts], [*cuts, len(words)], strict=True)]
    return Tree(draw.choice(["S", "NP", "VP"]), tuple(random_tree(draw, part) for part in parts))


def test_counts_and_scores_are_those_of_pyevalb() -> None:
    scorer = pytest.importorskip("PYEVALB.scorer", reason="PYEVALB is not installed; it is no dependency")
    parser = pytest.importorskip("PYEVALB.parser", reason="PYEVALB is not installed; it is no dependency")
    draw = random.Random(6)
    for _ in range(200):
        words = [f"w{place}" for place in range(draw.randint(2, 12))]
        gold, output = random_tree(draw, words), random_tree(draw, words)
        theirs = scorer.Scorer().score_trees(*(parser.create_from_bracket_string(t.brackets()) for t in (gold, output)))
        lines = [" ".join(linear_form(Tree(ROOT, (tree,)), keeps_tags=True)[1]) for tree in (output, gold)]
        matched, found, wanted, _, _, right, tagged, _ = statistics_of(*lines)
        assert (matched, found, wanted) == (theirs.matched_brackets, theirs.test_brackets, theirs.gold_brackets)
        assert right / tagged == pytest.approx(theirs.tag_accracy)


def test_the_metric_is_named_and_the_corpus_keeps_tags(tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("trees") / "x.ptb"
    path.write_text(GOLD, encoding="utf-8")
    (pair,) = Corpus(str(path), Selection(tree_keeps=("tags",))).pairs()
    assert pair.target == linear_line(GOLD)
    metric = BracketMetric("F1")
    assert metric.corpus_score([pair.target], [[pair.target]]).score == pytest.approx(100.0)
    assert str(metric.get_signature()) == "nrefs:1|brackets:EVALB-COLLINS|invalid:no brackets|version:1"
