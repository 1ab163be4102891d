"""Word documents: words change, formatting and links stay around the right ones, other members are copied."""

import io
import zipfile
from collections.abc import Callable

import pytest
from tests.documents.growth import require_linear_growth

from transduce.documents import office
from transduce.documents.filling import FillingReport
from transduce.errors import DataError

Fill = Callable[..., tuple[bytes, FillingReport]]
MAIN = "word/document.xml"
NAMESPACE = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
BOLD = "<w:rPr><w:b/></w:rPr>"
PLACED = '<w:pPr><w:jc w:val="left"/></w:pPr>'
CUT_UP = (
    '<w:p><w:r w:rsidR="1"><w:t>cut </w:t></w:r><w:proofErr w:type="spellStart"/>'
    '<w:r w:rsidR="2"><w:rPr><w:lang w:val="en-US"/></w:rPr><w:t>in</w:t><w:t> two</w:t></w:r></w:p>'
)
FIELD_PIECES = [
    '<w:fldChar w:fldCharType="begin"/>',
    "<w:instrText>PAGE</w:instrText>",
    '<w:fldChar w:fldCharType="separate"/>',
    "<w:t>1</w:t>",
    '<w:fldChar w:fldCharType="end"/>',
]
FIELD = f"<w:r>{''.join(FIELD_PIECES[:2])}</w:r><w:r>{''.join(FIELD_PIECES[2:])}</w:r>"
SPLIT_FIELD = "".join(f"<w:r>{piece}</w:r>" for piece in FIELD_PIECES)


def body(paragraphs: str) -> str:
    return (
        f'<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n<w:document xmlns:w="{NAMESPACE}" xmlns:r="urn:r">'
        f"<w:body>{paragraphs}<w:sectPr/></w:body></w:document>"
    )


def package(members: dict[str, str | bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


def word(paragraphs: str, **others: str) -> bytes:
    return package(
        {"[Content_Types].xml": "<Types/>", MAIN: body(paragraphs), "word/media/a.png": b"\x89PNG\0", **others}
    )


def members(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert archive.testzip() is None
        return {name: archive.read(name) for name in archive.namelist()}


def run(text: str, formatting: str = "") -> str:
    return f'<w:r>{formatting}<w:t xml:space="preserve">{text}</w:t></w:r>'


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (f"<w:p>{run('a word')}</w:p>", f"<w:p>{run('A WORD')}</w:p>"),
        (
            f'<w:p w:rsidR="1">{PLACED}{run("see ")}{run("this &amp; that", BOLD)}{run(" now")}</w:p>',
            f'<w:p w:rsidR="1">{PLACED}{run("SEE ")}{run("THIS &amp; THAT", BOLD)}{run(" NOW")}</w:p>',
        ),
        (CUT_UP, f"<w:p>{run('CUT IN TWO')}</w:p>"),
        (
            f'<w:p>{run("go ")}<w:hyperlink r:id="r1">{run("to it", BOLD)}</w:hyperlink>{run(" now")}</w:p>',
            f'<w:p>{run("GO ")}<w:hyperlink r:id="r1">{run("TO IT", BOLD)}</w:hyperlink>{run(" NOW")}</w:p>',
        ),
        (
            f"<w:p>{run('one')}<w:r><w:br/></w:r>{run('two')}<w:r><w:drawing/></w:r></w:p>",
            f"<w:p>{run('ONE')}<w:r><w:br/></w:r>{run('TWO')}<w:r><w:drawing/></w:r></w:p>",
        ),
        (
            f'<w:p>{run("a ")}<w:bookmarkStart w:id="0"/>{run("b")}<w:bookmarkEnd w:id="0"/>{run(" c")}</w:p>',
            f'<w:p><w:bookmarkStart w:id="0"/>{run("A B C")}<w:bookmarkEnd w:id="0"/></w:p>',
        ),
        (f"<w:p>{run('page ')}{FIELD}{run(' of')}</w:p>", f"<w:p>{run('PAGE ')}{SPLIT_FIELD}{run(' OF')}</w:p>"),
        ("<w:p/><w:p><w:pPr/></w:p><w:p><w:r><w:t>12</w:t></w:r></w:p>",) * 2,
        (
            f"<w:p><w:r><w:pict><w:txbxContent><w:p>{run('boxed')}</w:p></w:txbxContent></w:pict></w:r></w:p>",
            f"<w:p><w:r><w:pict><w:txbxContent><w:p>{run('BOXED')}</w:p></w:txbxContent></w:pict></w:r></w:p>",
        ),
    ],
)
def test_only_words_change(fill: Fill, before: str, after: str) -> None:
    content, report = fill("x.docx", word(before))
    assert report.left == []
    assert members(content)[MAIN].decode() == body(after)


def test_other_members_are_copied_in_their_order(fill: Fill) -> None:
    header = f'<w:hdr xmlns:w="{NAMESPACE}"><w:p>{run("a header")}</w:p></w:hdr>'
    before = word(f"<w:p>{run('a')}</w:p>", **{"word/header1.xml": header, "word/styles.xml": "<s>a word</s>"})
    content, _ = fill("x.docx", before)
    old, new = members(before), members(content)
    assert list(old) == list(new)
    assert new["word/header1.xml"].decode() == header.replace("a header", "A HEADER")
    for name in ("[Content_Types].xml", "word/media/a.png", "word/styles.xml"):
        assert new[name] == old[name]


@pytest.mark.parametrize(
    ("paragraph", "reason"),
    [
        (f"<w:p>{run('a')}<w:ins>{run('b')}</w:ins></w:p>", "tracked changes"),
        (f'<w:p>{run("a")}<w:r><w:fldChar w:fldCharType="begin"/></w:r></w:p>', "a field"),
        (f'<w:p><w:r><w:fldChar w:fldCharType="end"/></w:r>{run("a")}</w:p>', "a field"),
        (f"<w:p>{run('a')}<w:r><w:pict><w:p>{run('b')}</w:p></w:pict></w:r></w:p>", "text box"),
    ],
)
def test_paragraphs_that_need_a_person_are_left_and_listed(fill: Fill, paragraph: str, reason: str) -> None:
    _, report = fill("x.docx", word(paragraph))
    ((where, why, _),) = report.left
    assert reason in why
    assert "word/document.xml, paragraph 1" in where


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"PK\x03\x04 not a zip", "is not a whole Word document"),
        (package({"xl/workbook.xml": "<x/>"}), "it has no word/document.xml"),
        (package({MAIN: "<w:p>"}), r"document\.xml:1:\d+: the file is not well-formed XML"),
        (package({MAIN: '<!DOCTYPE x [<!ENTITY a "b">]><x>&a;</x>'}), "declares the entity"),
        (package({MAIN: b"<x>\xff</x>"}), "is not a whole Word document"),
    ],
)
def test_what_is_no_word_document_is_refused(fill: Fill, content: bytes, message: str) -> None:
    with pytest.raises(DataError, match=rf"x\.docx.*{message}"):
        fill("x.docx", content)


def test_a_package_is_not_unpacked_beyond_a_limit(fill: Fill, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(office, "_MOST_TEXT_BYTES", 1 << 20)
    with pytest.raises(DataError, match=r"MiB of text.* unpacked"):
        fill("x.docx", package({MAIN: " " * (2 << 20)}))


@pytest.mark.parametrize(
    "shape",
    [
        lambda n: word(f"<w:p>{run('a b')}</w:p>" * (n // 8)),
        lambda n: word(f"<w:p>{run('a')}{run('b', BOLD) * (n // 8)}</w:p>"),
        lambda n: word(f"<w:p>{(run('a') + run('b', BOLD)) * (n // 8)}</w:p>"),
        lambda n: word(f"<w:p>{run('a')}{'<w:r><w:tab/></w:r>' * (n // 8)}</w:p>"),
        lambda n: word("", **{f"word/header{k}.xml": f"<x>{k}</x>" for k in range(n // 16)}),
    ],
)
def test_time_and_memory_grow_with_the_document(shape: Callable[[int], bytes]) -> None:
    require_linear_growth("docx", shape)
