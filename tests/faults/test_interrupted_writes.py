"""What a writer leaves behind that is killed at any step, or meets a full or forbidden disk."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from transduce.errors import RunError
from transduce.files import (
    directory_written_atomically,
    manifest_fault,
    recover_directory,
    remove_leftovers,
    write_atomically,
)

SOURCE = str(Path(__file__).parents[2] / "src")
posix_only = pytest.mark.skipif(os.name == "nt", reason="kills and watches processes as POSIX systems do")
needs_dev_full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")


def write_model(path: Path, *, text: str) -> None:
    with directory_written_atomically(path) as beside:
        (beside / "sub").mkdir()
        for name in ("weights", "sub/state"):
            (beside / name).write_text(text, encoding="utf-8")


def content_of(path: Path) -> str:
    assert manifest_fault(path) is None
    texts = {(path / name).read_text(encoding="utf-8") for name in ("weights", "sub/state")}
    assert len(texts) == 1, "a mixture of two writes"
    return texts.pop()


class TestFullDisk:
    @needs_dev_full
    def test_leaves_the_old_file(self, tmp_path: Path) -> None:
        write_atomically(tmp_path / "file", "old")
        # The temporary name leads to the kernel's own full disk.
        beside = tmp_path / f"file.being-written-{os.getpid()}-{threading.get_native_id()}"
        beside.symlink_to("/dev/full")
        with pytest.raises(RunError, match=r"file: No space left on device\. Free some space on that disk, or choose"):
            write_atomically(tmp_path / "file", "new")
        assert (tmp_path / "file").read_text(encoding="utf-8") == "old"
        assert [entry.name for entry in tmp_path.iterdir()] == ["file"]

    @needs_dev_full
    def test_leaves_the_old_folder(self, tmp_path: Path) -> None:
        write_model(tmp_path / "model", text="old")
        with (
            pytest.raises(RunError, match=r"No space left on device.*what was there before is unchanged"),
            directory_written_atomically(tmp_path / "model"),
            Path("/dev/full").open("w", encoding="utf-8") as full,
        ):
            full.write("new")
        assert content_of(tmp_path / "model") == "old"
        assert [entry.name for entry in tmp_path.iterdir()] == ["model"]

    def test_leaves_the_old_folder_when_safetensors_meets_it(self, full_disk: Path) -> None:
        write_model(full_disk / "model", text="old")
        with (
            pytest.raises(RunError, match="No space left on device"),
            directory_written_atomically(full_disk / "model") as beside,
        ):
            save_file({"weights": torch.zeros(1_000_000)}, beside / "weights.safetensors")
        assert content_of(full_disk / "model") == "old"
        assert [entry.name for entry in full_disk.iterdir()] == ["model"]

    @pytest.mark.skipif(not Path("/sys").is_dir(), reason="this system has no /sys")
    def test_a_place_where_nobody_may_write_is_named(self) -> None:
        with pytest.raises(RunError, match=r"/sys/file.*: .+\. Give yourself access to it"):
            write_atomically(Path("/sys/file"), "new")


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a disk of half a megabyte, where the tests are allowed to."""
    mount = (
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", tmp_path], capture_output=True, text=True, check=False
        )
        if sys.platform == "linux"
        else None
    )
    if mount is None or mount.returncode:
        pytest.skip(f"no small disk can be mounted here ({mount.stderr.strip() if mount else sys.platform})")
    yield tmp_path
    subprocess.run(["umount", "--lazy", tmp_path], check=True)


WRITER = """
import os, signal, sys
from pathlib import Path

sys.path.insert(0, sys.argv[1])
from transduce.files import directory_written_atomically, write_atomically

place, last_step = Path(sys.argv[2]), int(sys.argv[3])
steps = 0

def kill_at_step(event, arguments):
    global steps
    if event in {"open", "os.rename", "os.mkdir", "os.remove", "os.rmdir"} and str(place) in str(arguments[0]):
        if steps == last_step:
            os.kill(os.getpid(), signal.SIGKILL)
        steps += 1

sys.addaudithook(kill_at_step)
"""
WRITE_FOLDER = """
with directory_written_atomically(place / "model") as beside:
    (beside / "sub").mkdir()
    for name in ("weights", "sub/state"):
        (beside / name).write_text("new", encoding="utf-8")
"""
WRITE_FILE = "write_atomically(place / 'file', 'new')"


def killed_at_step(code: str, place: Path, *, step: int) -> bool:
    """Run a writer that kills itself (SIGKILL) just before its `step`-th touch of the disk; tell whether it did."""
    command = [sys.executable, "-S", "-c", WRITER + code, SOURCE, str(place), str(step)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode in (0, -9), result.stderr
    return result.returncode == -9


@posix_only
class TestKill:
    def test_leaves_the_old_file_or_the_new_one(self, tmp_path: Path) -> None:
        seen: list[str] = []
        while True:
            place = tmp_path / str(len(seen))
            place.mkdir()
            write_atomically(place / "file", "old")
            was_killed = killed_at_step(WRITE_FILE, place, step=len(seen))
            seen.append((place / "file").read_text(encoding="utf-8"))
            remove_leftovers(place)
            assert [entry.name for entry in place.iterdir()] == ["file"]
            if not was_killed:
                break
        assert sorted(set(seen)) == ["new", "old"]
        assert seen == sorted(seen, reverse=True), "the new content appears once and stays"

    def test_leaves_the_old_folder_or_the_new_one_at_every_step(self, tmp_path: Path) -> None:
        seen: list[str] = []
        had_to_recover = False
        while True:
            place = tmp_path / str(len(seen))
            write_model(place / "model", text="old")
            was_killed = killed_at_step(WRITE_FOLDER, place, step=len(seen))
            had_to_recover |= not (place / "model").exists()
            recover_directory(place / "model")  # what a reader does, before any writer comes again
            seen.append(content_of(place / "model"))
            write_model(place / "model", text="next")
            assert content_of(place / "model") == "next"
            assert [entry.name for entry in place.iterdir()] == ["model"]
            if not was_killed:
                break
        assert had_to_recover, "no kill fell between the two renames"
        assert seen[-1] == "new"
        assert seen == sorted(seen, reverse=True), "the new content appears once and stays"
        assert seen.count("old") > 5
        assert seen.count("new") > 2


@pytest.mark.needs("strace")
def test_data_reaches_the_disk_before_its_name_does(tmp_path: Path, tool: Callable[[str], str]) -> None:
    """The system calls themselves: file flushed, then renamed, then the folder flushed."""
    trace = tmp_path / "trace"
    strace = [tool("strace"), "-y", "-e", "trace=fsync,rename,renameat,renameat2,mkdir", "-o", str(trace)]
    place = tmp_path / "place"
    command = [sys.executable, "-c", WRITER + WRITE_FOLDER, SOURCE, str(place / "new"), "-1"]
    subprocess.run([*strace, *command], check=True)
    calls = [line.replace(str(tmp_path), "") for line in trace.read_text(encoding="utf-8").splitlines()]

    def first(*parts: str) -> int:
        return next(index for index, call in enumerate(calls) if all(part in call for part in parts))

    beside = "/place/new/model.being-written-"
    rename_into_place = first("rename(", beside, '"/place/new/model")')
    assert first("mkdir", '"/place"') < first("fsync", "<>") < first("mkdir", '"/place/new"')
    assert first("mkdir", '"/place/new"') < first("fsync", "</place>") < rename_into_place
    rename_of_manifest = first("rename(", "manifest.json.being-written", '/manifest.json")')
    for name in ("weights>", "sub/state>"):
        assert first("fsync", beside, name) < rename_of_manifest, "the manifest comes last"
    assert first("fsync", beside, "/manifest.json.being-written") < rename_of_manifest < rename_into_place
    names_of_folders = [call for call in calls[rename_of_manifest:rename_into_place] if "fsync" in call]
    assert any("/sub>" in call for call in names_of_folders)
    assert any("/sub" not in call for call in names_of_folders)
    assert any("fsync" in call and "</place/new>" in call for call in calls[rename_into_place:])
