import re
import xml.etree.ElementTree as ElementTree

from transduce.inspection.tree_drawing import indented_lines, page_of, svg_of
from transduce.text.trees import Tree, read_trees

TEXT = "(TOP (S (NP (DT the) (NN <cat>)) (VP (VBZ sits) (PP (IN on) (NP (NN it))))))"
((_, TREE),) = read_trees([TEXT], name="x")


def test_indented_lines_are_the_same_tree() -> None:
    lines = indented_lines(TREE)
    assert lines.split("\n")[:3] == ["(TOP", "  (S", "    (NP (DT the) (NN <cat>))"]
    assert [tree for _, tree in read_trees(lines.split("\n"), name="x")] == [TREE]


def test_an_svg_has_every_label_and_word_inside_its_frame_and_words_in_order() -> None:
    root = ElementTree.fromstring(svg_of(TREE))
    texts = [element for element in root if element.tag.endswith("text")]
    words = [element for element in texts if element.get("class") == "word"]
    assert [word.text for word in sorted(words, key=lambda word: float(word.get("x", "0")))] == TREE.words()
    assert len({word.get("y") for word in words}) == 1
    labels = sorted(str(element.text) for element in texts if element.get("class") == "label")
    assert labels == sorted(re.findall(r"\(([A-Z]+)", TEXT))
    width, height = float(root.get("width", "0")), float(root.get("height", "0"))
    assert all(0 < float(t.get("x", "0")) < width and 0 < float(t.get("y", "0")) < height for t in texts)
    assert sum(element.tag.endswith("path") for element in root) == len(labels) - 1 + len(words)


def test_a_page_escapes_what_users_wrote() -> None:
    page = page_of([TREE, Tree("X", word="</section>")], title="<m>")
    assert page.count("<svg") == 2
    assert "<cat>" not in page
    assert page.count("</section>") == 2
    assert "<title>&lt;m&gt;</title>" in page
