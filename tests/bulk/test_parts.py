"""Parts of a text: any division into shards and parts, stopped anywhere, gives the output of one process."""

import gzip
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transduce.bulk.parts import Header, LargeText, Output, Part, Shard, fill, finished_parts, lines_of_parts, merge
from transduce.errors import RunError
from transduce.progress import Silent

FILES = st.lists(st.lists(st.text("ab é\r\x85\u2028", max_size=3), max_size=7), min_size=1, max_size=3)


def reversed_lines(part: Part) -> Output:
    """Make a part: each line backwards, after its number in the text."""
    return Output([f"{part.first + n} {line[::-1]}" for n, line in enumerate(part.lines)])


def write_text(folder: Path, files: list[list[str]]) -> tuple[Path, ...]:
    """Write the files of a text, every other one compressed, and none with a line end at its end."""
    paths = []
    for number, lines in enumerate(files):
        content = "\n".join(lines).encode() + (b"\n" if lines and not lines[-1] else b"")
        path = folder / f"text{number}{'.gz' if number % 2 else ''}"
        path.write_bytes(gzip.compress(content) if number % 2 else content)
        paths.append(path)
    return tuple(paths)


def work(
    text: LargeText,
    folder: Path,
    shard: Shard,
    make: Callable[[Part], Output] = reversed_lines,
    settings: dict[str, object] | None = None,
) -> bool:
    header = Header.model_validate(
        {"shard": shard, "files": [path.name for path in text.files], "settings": settings or {"model": "m"}}
    )
    return fill(folder, text.parts(), header, make, progress=Silent())


@given(files=FILES, part_lines=st.integers(1, 5), shards=st.integers(1, 4))
def test_any_shards_and_parts_give_the_output_of_all_lines(
    tmp_path_factory: pytest.TempPathFactory, files: list[list[str]], part_lines: int, shards: int
) -> None:
    files = [lines for lines in files if lines]
    home = tmp_path_factory.mktemp("parts")
    text = LargeText(write_text(home, files), part_lines)
    for number in range(shards, 0, -1):
        assert work(text, home / "out", Shard(number=number, count=shards))
    merge(home / "out", home / "merged")
    content = (home / "merged").read_bytes()
    read = [line for path in text.files for part in LargeText((path,)).parts() for line in part.lines]
    assert len(read) == sum(map(len, files))
    assert content == "".join(f"{n} {line[::-1]}\n" for n, line in enumerate(read)).encode()
    assert content == b"".join(path.read_bytes() for path in sorted((home / "out").glob("*.txt")))
    assert "".join(f"{line}\n" for line in lines_of_parts(home / "out")).encode() == content


@pytest.fixture
def text(tmp_path: Path) -> LargeText:
    return LargeText(write_text(tmp_path, [[f"line {n}" for n in range(10)], ["one", "two", "three"]]), 2)


class Killed(BaseException):
    pass


def test_stopped_after_every_part_it_makes_no_part_twice(text: LargeText, tmp_path: Path) -> None:
    made: list[str] = []

    def one_then_killed(part: Part) -> Output:
        if len(made) > before:
            raise Killed
        made.append(part.name)
        return reversed_lines(part)

    starts = 0
    while True:
        before, starts = len(made), starts + 1
        try:
            work(text, tmp_path / "out", Shard(), one_then_killed)
        except Killed:
            continue
        break
    assert starts == len(made) == len(set(made)) == 7
    work(text, tmp_path / "whole", Shard())
    merge(tmp_path / "out", tmp_path / "a")
    merge(tmp_path / "whole", tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_journal_cut_anywhere_is_continued(text: LargeText, tmp_path: Path) -> None:
    work(text, tmp_path / "whole", Shard())
    merge(tmp_path / "whole", tmp_path / "b")
    journal = tmp_path / "whole" / "shards" / "1-of-1.jsonl"
    content = journal.read_bytes()
    for length in range(0, len(content), 37):
        journal.write_bytes(content[:length])
        work(text, tmp_path / "whole", Shard())
        assert journal.read_bytes() == content
        assert merge(tmp_path / "whole", tmp_path / "a")
        assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_damaged_part_is_made_again(text: LargeText, tmp_path: Path) -> None:
    work(text, tmp_path / "out", Shard())
    part = tmp_path / "out" / "000000-000000000004.txt"
    content = part.read_bytes()
    part.write_bytes(content.replace(b"4", b"5"))
    with pytest.raises(
        RunError, match=r"000000-000000000004.txt is not as it was written. Run the command of its shard"
    ):
        merge(tmp_path / "out", tmp_path / "merged")
    assert not (tmp_path / "merged").exists()
    work(text, tmp_path / "out", Shard())
    assert part.read_bytes() == content
    merge(tmp_path / "out", tmp_path / "merged")


def test_a_request_stops_between_parts(text: LargeText, tmp_path: Path) -> None:
    answers = iter([False, False, True])
    header = Header(shard=Shard(), files=("a", "b"), settings={})
    stop = answers.__next__
    assert not fill(tmp_path / "out", text.parts(), header, reversed_lines, progress=Silent(), stop_requested=stop)
    assert len(list((tmp_path / "out").glob("*.txt"))) == 2


def test_lines_that_get_lost_are_noticed(text: LargeText, tmp_path: Path) -> None:
    with pytest.raises(RunError, match="000000-000000000000 has 2 lines, but 1 came back"):
        work(text, tmp_path / "out", Shard(), lambda part: Output(part.lines[:1]))


REFUSALS = {
    "no folder": "holds no parts. Name the folder",
    "missing shard": r"lacks shard 2 of 3\. Run those commands\.",
    "unfinished shard": r"Shard 3-of-3 in .* is not done\. Run its command again",
    "missing part": r"000000-000000000002\.txt is missing",
    "missing entry": "holds 6 parts of 7",
    "foreign file": r"holds notes\.txt, which is no part",
    "other text": "The text is not the one that the parts",
}


@pytest.mark.parametrize("case", REFUSALS)
def test_merge_refuses(case: str, text: LargeText, tmp_path: Path) -> None:
    out = tmp_path / "out"
    if case != "no folder":
        for number in (1, 2, 3):
            work(text, out, Shard(number=number, count=3))
        finished_parts(out)
    journal = {number: out / "shards" / f"{number}-of-3.jsonl" for number in (1, 2, 3)}
    if case == "missing shard":
        journal[2].unlink()
    if case == "unfinished shard":
        journal[3].write_text(re.sub(r'\{"parts".*\n', "", journal[3].read_text()))
    if case == "missing part":
        (out / "000000-000000000002.txt").unlink()
    if case == "missing entry":
        journal[2].write_text(re.sub(r'\{"part":"000000-000000000002".*\n', "", journal[2].read_text()))
    if case == "foreign file":
        (out / "notes.txt").write_text("hello\n")
    if case == "other text":
        journal[3].write_text(journal[3].read_text().replace('"lines":13', '"lines":14'))
    with pytest.raises(RunError, match=REFUSALS[case]):
        merge(out, tmp_path / "merged")
    assert not (tmp_path / "merged").exists()


def test_other_settings_shards_or_text_are_refused(text: LargeText, tmp_path: Path) -> None:
    out = tmp_path / "out"
    work(text, out, Shard(number=1, count=2))
    with pytest.raises(RunError, match="parts of shard 1-of-2 that were made otherwise: model"):
        work(text, out, Shard(number=2, count=2), settings={"model": "n"})
    with pytest.raises(RunError, match=r"made otherwise: the number of shards \(2, not 3\)"):
        work(text, out, Shard(number=2, count=3))
    text.files[0].write_text("other\n" * 10)
    with pytest.raises(RunError, match="The text is not the one"):
        work(text, out, Shard(number=1, count=2))
