import pytest
from hypothesis import given
from hypothesis import strategies as st

from transduce.errors import DataError
from transduce.text.trees import DEEPEST, ROOT, Tree, linear_form, prepared_tree, read_trees, tree_of, words_of

WORKED = "(TOP (S (NP (DT The) (NN cat)) (VP (VBZ sits) (PP (IN on) (NP (PRP it)))) (. .)))"

LABELS = st.sampled_from(["S", "NP", "VP-TMP", "-NONE-", "PRP$", "NP=2", "X"])
WORDS = st.text(st.characters(exclude_categories=("Z", "C"), exclude_characters="()"), min_size=1, max_size=5)
LEAVES = st.builds(lambda label, word: Tree(label, word=word), LABELS, st.one_of(WORDS, st.sampled_from("()")))
TREES = st.recursive(
    LEAVES, lambda inner: st.builds(Tree, LABELS, st.lists(inner, min_size=1, max_size=3).map(tuple)), max_leaves=12
)


def read(text: str) -> list[Tree]:
    return [tree for _, tree in read_trees(text.split("\n"), name="x.ptb")]


@given(TREES)
def test_brackets_and_the_linear_form_lose_nothing(tree: Tree) -> None:
    assert read(tree.brackets()) == [tree]
    whole = prepared_tree(tree, keeps=("tags", "functions", "empty"))
    assert whole == Tree(ROOT, (tree,))
    assert tree_of(*linear_form(whole, keeps_tags=True)) == whole


def test_the_paper_example_by_hand() -> None:
    (tree,) = read(WORKED)
    kept = prepared_tree(tree)
    assert kept is not None
    words, symbols = linear_form(kept)
    assert " ".join(words) == "The cat sits on it ."
    assert " ".join(symbols) == "(S (NP XX XX )NP (VP XX (PP XX (NP XX )NP )PP )VP XX )S"
    assert " ".join(linear_form(kept, keeps_tags=True)[1]).startswith("(S (NP DT NN )NP")


def test_functions_and_empty_elements_go_by_name_and_take_what_they_leave_empty_with_them() -> None:
    (tree,) = read("( (S-TPC=1 (NP-SBJ (-NONE- *T*-1)) (VP (VB go) (-LRB- -LRB-))))")
    dropped, kept = prepared_tree(tree), prepared_tree(tree, keeps=("functions", "empty"))
    assert dropped is not None
    assert kept is not None
    assert dropped.brackets() == "(TOP (S (VP (VB go) (-LRB- -LRB-))))"
    assert dropped.words() == ["go", "("]
    assert kept.brackets() == "(TOP (S-TPC=1 (NP-SBJ (-NONE- *T*-1)) (VP (VB go) (-LRB- -LRB-))))"
    assert prepared_tree(read("(S (-NONE- *))")[0]) is None


def test_a_tree_may_span_lines_and_says_where_it_begins() -> None:
    trees = list(read_trees(["(S", "  (NN a))", "", "(S (NN b))"], name="x.mrg"))
    assert [(line, tree.words()) for line, tree in trees] == [(1, ["a"]), (4, ["b"])]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(S (NN a)", r"x\.ptb:1: the tree that begins here is not closed\. 1 \)"),
        ("(S (NN a))\n)", r"x\.ptb:2: '\)' is outside of all brackets"),
        ("(S (NN a))\nb", r"x\.ptb:2: 'b' is outside"),
        ("(NP the (NN cat))", r"x\.ptb:1: the word 'the' has brackets inside"),
        ("(NP (NN cat) the)", r"x\.ptb:1: 'the' is beside another word or bracket"),
        ("(NN two words)", r"x\.ptb:1: 'words' is beside"),
        ("(S\n(NP))", r"x\.ptb:2: the bracket \(NP\) is empty"),
        ("()", r"x\.ptb:1: the bracket \(\) is empty"),
        ("\n" + "(S " * 100_000, rf"x\.ptb:2: more than {DEEPEST} brackets deep"),
    ],
)
def test_malformed_and_deep_brackets_are_refused_with_their_line(text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read(text)


@pytest.mark.parametrize(
    "symbols",
    ["(S XX", "XX )S", "(S XX )NP", "(S )S XX", "XX XX", "", "(S (S XX )S", "(S " * 300 + "XX" + " )S" * 300],
)
def test_symbols_that_are_no_tree_over_one_word_are_refused(symbols: str) -> None:
    with pytest.raises(DataError, match=r"symbol|brackets are not closed"):
        tree_of(["a"], symbols.split())


def test_the_deepest_tree_is_read_compared_and_written() -> None:
    text = "(S " * (DEEPEST - 1) + "(NN a)" + ")" * (DEEPEST - 1)
    (tree,) = read(text)
    assert tree == read(text)[0]
    assert tree.brackets() == text


def test_only_plain_spaces_separate_words() -> None:
    assert words_of(" 100\u00a0000  euros\t!\n") == ["100\u00a0000", "euros", "!"]
