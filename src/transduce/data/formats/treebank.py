"""Treebanks: bracketed trees (.ptb, .mrg), whose words are the source and whose symbols are the target."""

from collections.abc import Iterator

from transduce.data.formats.corpus_file import CorpusFile
from transduce.data.formats.pair import Pair, Selection
from transduce.text.trees import linear_form, prepared_tree, read_trees


def read_treebank(file: CorpusFile, selection: Selection) -> Iterator[Pair]:
    """Yield the words and the symbols of each tree; `selection.tree_keeps` says what symbols keep."""
    keeps = selection.tree_keeps
    for line, tree in read_trees(file.lines(), name=str(file.path)):
        kept = prepared_tree(tree, keeps=keeps)
        if kept is None:
            yield Pair("", "", line)
        else:
            words, symbols = linear_form(kept, keeps_tags="tags" in keeps)
            yield Pair(" ".join(words), " ".join(symbols), line)
