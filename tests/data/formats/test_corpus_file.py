import codecs
import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transduce.data.formats import CorpusFile
from transduce.errors import DataError

PACKED = ["", ".gz", ".xz", ".bz2", ".zst"]


def written(folder: Path, content: bytes, name: str = "text.en") -> CorpusFile:
    (folder / name).write_bytes(content)
    return CorpusFile(folder / name)


@pytest.mark.parametrize(
    "not_an_end", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\x1e", "\r"], ids=lambda c: f"U+{ord(c):04X}"
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_lines_end_at_newlines_and_nowhere_else(tmp_path: Path, not_an_end: str, encoding: str) -> None:
    file = written(tmp_path, f"a{not_an_end}b\nc\r\nd".encode(encoding))
    assert list(file.lines()) == [f"a{not_an_end}b", "c", "d"]


line_texts = st.lists(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n\r"), max_size=9), min_size=1
)


@given(line_texts, st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]), st.sampled_from(["\n", "\r\n"]))
def test_any_text_comes_back_line_by_line(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], encoding: str, end: str
) -> None:
    if encoding == "utf-8" and (lines[0].startswith("\ufeff") or "\0" in (lines[0] + end)[:2]):
        return  # not to be told from a byte order mark, or from UTF-16 without one
    content = "".join(line + end for line in lines).encode(encoding)
    if encoding == "utf-16" and is_also_utf32(content):
        return
    assert list(written(tmp_path_factory.mktemp("lines"), content).lines()) == lines


def is_also_utf32(content: bytes) -> bool:
    """Return whether UTF-16 is UTF-32 as well: it begins with U+0000, and every second unit is at most U+0010."""
    first = content.partition(b"\n")[0]
    try:
        return first[:4] == codecs.BOM_UTF32_LE and len(first[: len(first) // 4 * 4].decode("utf-32")) > 0
    except UnicodeDecodeError:
        return False


def test_utf16_may_begin_with_the_character_zero(tmp_path: Path) -> None:
    assert list(written(tmp_path, "\0ab\nc\n".encode("utf-16")).lines()) == ["\0ab", "c"]


@pytest.mark.parametrize("order", ["utf-16-le", "utf-16-be"])
def test_utf16_is_read_in_either_byte_order(tmp_path: Path, order: str) -> None:
    assert list(written(tmp_path, "\ufeffgrün\r\n日本\n".encode(order)).lines()) == ["grün", "日本"]


def test_utf16_is_read_across_parts_of_the_file(tmp_path: Path) -> None:
    lines = [f"{number} 𝄞 ü" * (number % 7) for number in range(30_000)]
    assert list(written(tmp_path, "\n".join([*lines, "end"]).encode("utf-16")).lines()) == [*lines, "end"]


@pytest.mark.parametrize("suffix", PACKED)
def test_packed_files_read_like_plain_ones(
    tmp_path: Path, suffix: str, packers: dict[str, Callable[[bytes], bytes]]
) -> None:
    lines = [f"Zeile {number} ä" for number in range(20_011)]
    text = ("\n".join(lines) + "\n").encode()
    twice = packers[suffix](text[:1000]) + packers[suffix](text[1000:])  # as `cat a.gz b.gz` makes them
    assert list(written(tmp_path, twice, f"text.en{suffix}").lines()) == lines


@pytest.mark.parametrize("suffix", PACKED[1:])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.99])
def test_a_truncated_archive_is_refused(
    tmp_path: Path, suffix: str, share: float, packers: dict[str, Callable[[bytes], bytes]]
) -> None:
    text = "\n".join(hashlib.sha256(bytes([n % 256, n // 256])).hexdigest() for n in range(5_003)).encode()
    packed = packers[suffix](text)
    file = written(tmp_path, packed[: max(5, int(len(packed) * share))], f"text.en{suffix}")
    with pytest.raises(DataError, match=r"text\.en\.\w+ is damaged or cut off.*compress it again"):
        list(file.lines())


@pytest.mark.parametrize("suffix", PACKED[1:])
def test_a_plain_file_that_claims_to_be_packed_is_refused_with_the_way_out(tmp_path: Path, suffix: str) -> None:
    with pytest.raises(DataError, match=f"remove {suffix} from its name"):
        list(written(tmp_path, b"plain text\n", f"text.en{suffix}").lines())


@pytest.mark.parametrize("suffix", PACKED)
@pytest.mark.parametrize("content", [b"", b"\xef\xbb\xbf", b"\xff\xfe"])
def test_an_empty_file_is_refused(
    tmp_path: Path, suffix: str, content: bytes, packers: dict[str, Callable[[bytes], bytes]]
) -> None:
    with pytest.raises(DataError, match="is empty"):
        list(written(tmp_path, packers[suffix](content), f"text.en{suffix}").lines())


def test_invalid_utf8_is_refused_with_file_line_and_byte(tmp_path: Path) -> None:
    file = written(tmp_path, b"fine\nstill fine\nr\xe9sum\xe9\n")
    with pytest.raises(DataError, match=r"text\.en:3: byte 2 of this line, 0xe9, is not UTF-8.*Latin-1"):
        list(file.lines())


def test_invalid_utf16_is_refused_with_file_and_line(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"text\.en: invalid UTF-16 after line \d+"):
        list(written(tmp_path, "\ufeffa\nb\n".encode("utf-16-le") + b"\x00\xd8x").lines())


@pytest.mark.parametrize(
    ("encoding", "message"), [("utf-16-le", "without a byte order mark"), ("utf-16-be", "UTF-16"), ("utf-32", "UTF-32")]
)
def test_other_encodings_are_named(tmp_path: Path, encoding: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        list(written(tmp_path, "text\n".encode(encoding)).lines())


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nowhere\.en does not exist"):
        list(CorpusFile(tmp_path / "nowhere.en").lines())
    with pytest.raises(DataError, match=r"is a folder|cannot be read"):
        list(CorpusFile(tmp_path).lines())


@pytest.mark.parametrize("suffix", PACKED)
def test_the_fingerprint_is_that_of_the_file_itself(
    tmp_path: Path, suffix: str, packers: dict[str, Callable[[bytes], bytes]]
) -> None:
    packed = packers[suffix](b"one\ntwo\n" * 100)
    counted: list[int] = []
    (tmp_path / f"a.en{suffix}").write_bytes(packed)
    file = CorpusFile(tmp_path / f"a.en{suffix}", on_read=counted.append)
    assert len(list(file.lines())) == 200
    assert file.fingerprint().sha256 == hashlib.sha256(packed).hexdigest()
    assert (file.fingerprint().bytes, sum(counted)) == (len(packed), len(packed))


def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path: Path) -> None:
    file = written(tmp_path, b"one\ntwo\nthree\n")
    lines = file.lines()
    next(lines)
    os.utime(file.path, ns=(1, 1))
    with pytest.raises(DataError, match="changed while it was read"):
        list(lines)


def test_a_line_without_end_is_refused_before_it_fills_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("transduce.data.formats.corpus_file._MOST_LINE_BYTES", 1 << 20)
    for encoding in ("utf-8", "utf-16"):
        with pytest.raises(DataError, match=r"text\.en:2: this line is longer than 1 MiB"):
            list(written(tmp_path, ("a\n" + "b" * (3 << 20)).encode(encoding)).lines())
