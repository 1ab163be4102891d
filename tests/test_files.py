"""A name that exists is whole, whatever interrupts its writer."""

import errno
import json
import os
import re
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from transduce.errors import RunError
from transduce.files import (
    MANIFEST,
    directory_written_atomically,
    file_written_atomically,
    locked,
    manifest_fault,
    recover_directory,
    remove_leftovers,
    write_atomically,
    write_manifest,
)

posix_only = pytest.mark.skipif(os.name == "nt", reason="uses links, permissions or devices of POSIX systems")


def write_model(path: Path, *, text: str) -> None:
    """Write a folder with a subfolder, a nested manifest and an empty file: all that a manifest could overlook."""
    with directory_written_atomically(path) as beside:
        (beside / "weights").write_text(text, encoding="utf-8")
        (beside / "sub").mkdir()
        (beside / "sub" / MANIFEST).write_text(text, encoding="utf-8")
        (beside / "empty").touch()


def content_of(path: Path) -> str:
    assert manifest_fault(path) is None
    texts = {(path / "weights").read_text(encoding="utf-8"), (path / "sub" / MANIFEST).read_text(encoding="utf-8")}
    assert len(texts) == 1, "a mixture of two writes"
    return texts.pop()


class TestFile:
    @pytest.mark.parametrize(("content", "expected"), [("Grüße\n", b"Gr\xc3\xbc\xc3\x9fe\n"), (b"\r\n\0", b"\r\n\0")])
    def test_holds_exactly_the_bytes(self, tmp_path: Path, content: str | bytes, expected: bytes) -> None:
        write_atomically(tmp_path / "file", "before, and longer than what follows")
        write_atomically(tmp_path / "file", content)
        assert (tmp_path / "file").read_bytes() == expected
        assert [entry.name for entry in tmp_path.iterdir()] == ["file"]

    def test_keeps_its_old_content_when_the_write_is_interrupted(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write_atomically(tmp_path / "file", "old")

        def interrupt(descriptor: int) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(os, "fsync", interrupt)
        with pytest.raises(KeyboardInterrupt):
            write_atomically(tmp_path / "file", "new")
        assert (tmp_path / "file").read_text(encoding="utf-8") == "old"
        assert [entry.name for entry in tmp_path.iterdir()] == ["file"]

    @posix_only
    def test_is_as_readable_for_others_as_any_file_of_the_user(self, tmp_path: Path) -> None:
        (tmp_path / "plain").touch()
        write_atomically(tmp_path / "file", "")
        assert (tmp_path / "file").stat().st_mode == (tmp_path / "plain").stat().st_mode

    def test_two_threads_leave_one_whole_content(self, tmp_path: Path) -> None:
        contents = [str(digit) * 100_000 for digit in range(4)]

        def write_often(content: str) -> None:
            for _ in range(10):
                write_atomically(tmp_path / "file", content)

        threads = [threading.Thread(target=write_often, args=[content]) for content in contents]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert (tmp_path / "file").read_text(encoding="utf-8") in contents
        assert [entry.name for entry in tmp_path.iterdir()] == ["file"]

    def test_a_fault_that_is_ours_is_not_dressed_up(self, tmp_path: Path) -> None:
        with pytest.raises(FileNotFoundError), file_written_atomically(tmp_path / "file"):
            (tmp_path / "nothing").read_bytes()
        assert list(tmp_path.iterdir()) == []


class TestFolder:
    def test_takes_its_place_whole_and_replaces_the_old_one(self, tmp_path: Path) -> None:
        for text in ("old", "new"):
            write_model(tmp_path / "runs" / "model", text=text)
            assert content_of(tmp_path / "runs" / "model") == text
            assert [entry.name for entry in (tmp_path / "runs").iterdir()] == ["model"]

    def test_is_untouched_when_the_block_fails(self, tmp_path: Path) -> None:
        write_model(tmp_path / "model", text="old")

        def fail_half_way(folder: Path) -> None:
            (folder / "weights").write_text("half", encoding="utf-8")
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt), directory_written_atomically(tmp_path / "model") as beside:
            fail_half_way(beside)
        assert content_of(tmp_path / "model") == "old"
        assert [entry.name for entry in tmp_path.iterdir()] == ["model"]

    def test_comes_back_when_the_new_one_cannot_take_its_place(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write_model(tmp_path / "model", text="old")
        rename = Path.rename

        def refuse_the_new_one(self: Path, target: Path) -> Path:
            if "being-written" in self.name:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            return rename(self, target)

        monkeypatch.setattr(Path, "rename", refuse_the_new_one)
        with pytest.raises(RunError, match=rf"{os.strerror(errno.EIO)}\. The disk, or the connection to it, fails"):
            write_model(tmp_path / "model", text="new")
        assert content_of(tmp_path / "model") == "old"
        assert [entry.name for entry in tmp_path.iterdir()] == ["model"]

    def test_takes_its_place_though_a_reader_brings_the_old_one_back_meanwhile(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write_model(tmp_path / "model", text="old")
        rename, readers = Path.rename, iter(range(3))

        def let_a_reader_in_between(self: Path, target: Path) -> Path:
            if "being-written" in self.name and next(readers, None) is not None:
                recover_directory(tmp_path / "model")
                assert content_of(tmp_path / "model") == "old"
            return rename(self, target)

        monkeypatch.setattr(Path, "rename", let_a_reader_in_between)
        write_model(tmp_path / "model", text="new")
        assert content_of(tmp_path / "model") == "new"
        assert next(readers, None) is None

    @posix_only
    def test_replaces_a_link_and_a_file_of_the_same_name(self, tmp_path: Path) -> None:
        write_model(tmp_path / "elsewhere", text="old")
        (tmp_path / "model").symlink_to(tmp_path / "elsewhere")
        write_model(tmp_path / "model", text="new")
        (tmp_path / "file").touch()
        write_model(tmp_path / "file", text="new")
        assert content_of(tmp_path / "model") == content_of(tmp_path / "file") == "new"
        assert content_of(tmp_path / "elsewhere") == "old"
        assert {entry.name for entry in tmp_path.iterdir()} == {"elsewhere", "file", "model"}

    @posix_only
    def test_may_hold_files_that_nobody_may_write(self, tmp_path: Path) -> None:
        with directory_written_atomically(tmp_path / "model") as beside:
            (beside / "weights").touch(stat.S_IRUSR)
        assert manifest_fault(tmp_path / "model") is None


def test_leftovers_are_removed_and_nothing_else(tmp_path: Path) -> None:
    write_model(tmp_path / "lost", text="old")
    (tmp_path / "lost").rename(tmp_path / "lost.being-replaced")
    write_model(tmp_path / "kept[1]", text="new")
    write_model(tmp_path / "kept[1].being-replaced", text="old")
    (tmp_path / "step.being-written-7-7").mkdir()
    (tmp_path / "metrics.being-written-7-8").touch()
    users_own = {"model.replaced", "notes.being-written", "being-replaced"}
    for name in users_own:
        (tmp_path / name).mkdir()
    remove_leftovers(tmp_path, only="another")
    assert len(list(tmp_path.iterdir())) == 5 + len(users_own)
    remove_leftovers(tmp_path)
    assert {entry.name for entry in tmp_path.iterdir()} == {"lost", "kept[1]", *users_own}
    assert content_of(tmp_path / "lost") == "old"
    assert content_of(tmp_path / "kept[1]") == "new"


class TestManifest:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        write_model(tmp_path / "model", text="a text")
        return tmp_path / "model"

    def test_names_every_file_with_its_size(self, folder: Path) -> None:
        files = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))["files"]
        assert {name: entry["bytes"] for name, entry in files.items()} == {
            "weights": 6, f"sub/{MANIFEST}": 6, "empty": 0,
        }  # fmt: skip
        # SHA-256 of no bytes at all, as FIPS 180-4's own example gives it.
        nothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        assert files["empty"]["sha256"] == nothing

    def test_writing_it_again_changes_nothing(self, folder: Path) -> None:
        before = (folder / MANIFEST).read_bytes()
        write_manifest(folder)
        assert (folder / MANIFEST).read_bytes() == before

    def test_finds_a_missing_file(self, folder: Path) -> None:
        (folder / "weights").unlink()
        assert manifest_fault(folder) == f"{folder / 'weights'} is missing"

    def test_finds_a_short_file(self, folder: Path) -> None:
        (folder / "weights").write_bytes(b"a t")
        assert manifest_fault(folder) == f"{folder / 'weights'} has 3 bytes, but its manifest says 6"

    def test_finds_every_flipped_bit(self, folder: Path) -> None:
        original = (folder / "weights").read_bytes()
        for bit in range(8 * len(original)):
            damaged = bytearray(original)
            damaged[bit // 8] ^= 1 << bit % 8
            (folder / "weights").write_bytes(damaged)
            assert manifest_fault(folder) == f"{folder / 'weights'} does not match its SHA-256"

    def test_looks_only_at_what_it_is_asked_about(self, folder: Path) -> None:
        (folder / "weights").write_bytes(b"")
        assert manifest_fault(folder, only={"empty"}) is None
        assert manifest_fault(folder, only={"weights"}) is not None

    def test_is_itself_missed(self, folder: Path) -> None:
        (folder / MANIFEST).unlink()
        assert manifest_fault(folder) == f"{folder / MANIFEST} is missing"

    @pytest.mark.parametrize(
        "content", [b"", b"{", b"[]", b"{}", b'{"files": 3}', b'{"files": [[1, {}]]}', b"\xff", b"[" * 100_000]
    )
    def test_unreadable_is_said_to_be(self, folder: Path, content: bytes) -> None:
        (folder / MANIFEST).write_bytes(content)
        assert f"{folder / MANIFEST} cannot be read (" in str(manifest_fault(folder))

    @pytest.mark.parametrize("name", ["../outside", "/etc/hostname", "sub/../../outside"])
    def test_may_not_lead_out_of_its_folder(self, folder: Path, name: str) -> None:
        (folder / MANIFEST).write_text(json.dumps({"files": {name: {"bytes": 0}}}), encoding="utf-8")
        assert manifest_fault(folder) == f"{folder / MANIFEST} has an invalid entry {name!r}"

    @pytest.mark.parametrize("name", ["x" * 300, "a\0b"])
    def test_may_name_what_no_disk_can_hold(self, folder: Path, name: str) -> None:
        (folder / MANIFEST).write_text(json.dumps({"files": {name: {"bytes": 1}}}), encoding="utf-8")
        assert re.search("is missing|cannot be read", str(manifest_fault(folder)))

    def test_entry_must_be_a_table(self, folder: Path) -> None:
        (folder / MANIFEST).write_text('{"files": {"weights": "abc"}}', encoding="utf-8")
        assert manifest_fault(folder) == f"{folder / MANIFEST} has an invalid entry 'weights'"


HOLDER = """
import sys
from pathlib import Path

sys.path.insert(0, sys.argv[1])
from transduce.files import locked

with locked(Path(sys.argv[2]), purpose="training"):
    print("held", flush=True)
    sys.stdin.read()
"""


class TestLock:
    def test_refuses_while_another_process_holds_it_and_is_free_when_that_is_killed(self, tmp_path: Path) -> None:
        lock = tmp_path / "run" / "lock"
        command = [sys.executable, "-c", HOLDER, str(Path(__file__).parents[1] / "src"), str(lock)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
            assert holder.stdout is not None
            assert holder.stdout.readline() == "held\n"
            with pytest.raises(RunError) as refusal, locked(lock, purpose="averaging"):
                pytest.fail("two processes hold one lock")
            assert f"{lock.parent} is in use by another process (process {holder.pid} on " in str(refusal.value)
            assert ", training). Wait for it or stop it" in str(refusal.value)
            holder.kill()  # SIGKILL: no chance to tidy up
        with locked(lock, purpose="averaging"):
            assert "averaging" in lock.read_text(encoding="utf-8")
            assert "training" not in lock.read_text(encoding="utf-8")

    def test_is_free_after_the_block_however_it_ends(self, tmp_path: Path) -> None:
        with pytest.raises(KeyboardInterrupt), locked(tmp_path / "lock", purpose="training"):
            raise KeyboardInterrupt
        with locked(tmp_path / "lock", purpose="training"):
            pass

    def test_holds_though_the_disk_cannot_take_the_name_of_the_holder(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(*_: object) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr(os, "ftruncate", refuse)
        with (
            locked(tmp_path / "lock", purpose="training"),
            pytest.raises(RunError, match="is in use by another process"),
            locked(tmp_path / "lock", purpose="averaging"),
        ):
            pass

    def test_refuses_a_second_holder_in_the_same_process(self, tmp_path: Path) -> None:
        with locked(tmp_path / "lock", purpose="training"):
            with pytest.raises(RunError, match="in use"), locked(tmp_path / "lock", purpose="training"):
                pytest.fail("held twice")
            with pytest.raises(RunError, match="in use"), locked(tmp_path / "lock", purpose="training"):
                pytest.fail("the refused one set it free")


@pytest.mark.skipif(os.name != "posix", reason="modes of files are POSIX's")
def test_whoever_may_enter_a_written_directory_may_read_its_files(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        with directory_written_atomically(tmp_path / "model") as beside:
            (beside / "weights").write_bytes(b"1")
            (beside / "weights").chmod(0o600)
    finally:
        os.umask(before)
    assert (tmp_path / "model" / "weights").stat().st_mode & 0o777 == 0o640
