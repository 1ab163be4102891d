"""The simulated disk loses what a real one may lose, and nothing that was flushed: else power cuts prove nothing."""

import random
from pathlib import Path

from tests.faults.recorded_disk import Data, Disk, Folder, Operation, PowerCut, operations

ROOT = Path("/disk")


def left(*operations: Operation, cuts: int = 300) -> set[tuple[tuple[str, bytes], ...]]:
    """Return every state of the root that power cuts after these operations leave."""
    found = set()
    for seed in range(cuts):
        disk = Disk(ROOT)
        for operation in operations:
            disk.apply(operation)
        cut = PowerCut(random.Random(seed), disk)
        names = cut.names(disk.top)
        found.add(tuple(sorted((name, cut.content(node)) for name, node in names.items() if isinstance(node, Data))))
    return found


def create(name: str, data: bytes) -> tuple[Operation, Operation]:
    return Operation("create", f"/disk/{name}"), Operation("write", f"/disk/{name}", data=data)


FLUSH_ROOT = Operation("flush", "/disk")
NEW = create("new", b"12")
RENAME = Operation("rename", "/disk/new", "/disk/file")


def test_what_was_not_flushed_may_be_lost_torn_or_zeros() -> None:
    states = left(*NEW)
    assert states == {(), *((("new", content),) for content in (b"", b"1", b"12", b"1\0", b"\0\0"))}


def test_a_rename_before_the_flush_leaves_a_torn_file_under_the_final_name() -> None:
    """The mistake that every durable writer must avoid: were it made here, the campaign would see it."""
    states = left(*NEW, RENAME, FLUSH_ROOT)
    assert (("file", b"1"),) in states
    assert (("file", b""),) in states


def test_what_was_flushed_stays() -> None:
    flushed = (*NEW, Operation("flush", "/disk/new"), RENAME)
    assert left(*flushed) == {(), (("new", b"12"),), (("file", b"12"),)}
    assert left(*flushed, FLUSH_ROOT) == {(("file", b"12"),)}


def test_names_may_be_lost_out_of_order_but_not_after_a_flush_of_their_folder() -> None:
    both = (*create("a", b""), *create("b", b""))
    assert left(*both) == {(), (("a", b""),), (("b", b""),), (("a", b""), ("b", b""))}
    assert left(*both, FLUSH_ROOT) == {(("a", b""), ("b", b""))}
    assert left(*both, FLUSH_ROOT, Operation("remove", "/disk/a")) == {(("b", b""),), (("a", b""), ("b", b""))}


def test_a_folder_that_was_never_named_takes_its_files_with_it() -> None:
    disk = Disk(ROOT)
    for operation in (
        Operation("mkdir", "/disk/sub"),
        Operation("create", "/disk/sub/file"),
        Operation("write", "/disk/sub/file", data=b"1"),
        Operation("flush", "/disk/sub/file"),
        Operation("flush", "/disk/sub"),
    ):
        disk.apply(operation)
    assert disk.top.safe == {}
    sub = disk.top.now["sub"]
    assert isinstance(sub, Folder)
    assert sub.safe == {"file": Data(safe=b"1")}


def test_calls_of_two_threads_that_cross_are_not_lost(tmp_path: Path) -> None:
    def quoted(text: str) -> str:
        return "".join(f"\\x{byte:02x}" for byte in text.encode())

    file = f"5<{quoted('/disk/file')}>"
    trace = tmp_path / "trace.txt"
    trace.write_text(
        f'7  fsync({file} <unfinished ...>\n8  write({file}, "{quoted("ab")}", 2) = 2\n7  <... fsync resumed>) = 0\n',
        encoding="ascii",
    )
    assert [operation.kind for operation in operations(trace, root=ROOT)] == ["write", "flush"]
