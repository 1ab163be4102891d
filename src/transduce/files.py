"""Durable files: write beside, fsync, rename, manifest, lock. Every durable write goes through here.

A name that exists is whole. Whoever pulls the plug finds either the old content or the new, never a part:
content is written under a temporary name in the same folder, flushed to the disk, renamed over its place, and
the folder itself is flushed so that the new name survives too.
"""

import contextlib
import hashlib
import json
import os
import shutil
import sys
from collections.abc import Container, Iterator
from pathlib import Path

from transduce.errors import RunError

MANIFEST = "manifest.json"
_BEING_WRITTEN = ".being-written"


def write_atomically(path: Path, content: bytes | str) -> None:
    """Replace the file at `path` by `content`, or leave it as it was."""
    data = content.encode("utf-8") if isinstance(content, str) else content
    beside = path.with_name(f"{path.name}{_BEING_WRITTEN}-{os.getpid()}")
    try:
        with beside.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)  # noqa: PTH105 - Path.replace hides which of the two names an error is about
        fsync_directory(path.parent)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def directory_written_atomically(path: Path) -> Iterator[Path]:
    """Yield an empty folder to fill; on success it takes its place at `path` with a manifest, else it is removed.

    An existing `path` is replaced. On a power cut between the two renames the old folder waits under
    `<name>.replaced`, and `recover_directory` brings it back.
    """
    beside = path.with_name(f"{path.name}{_BEING_WRITTEN}-{os.getpid()}")
    shutil.rmtree(beside, ignore_errors=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    beside.mkdir()
    try:
        yield beside
        write_manifest(beside)
        for file in _files_below(beside):
            _fsync_file(file)
        for folder in [*(f for f in beside.rglob("*") if f.is_dir()), beside]:
            fsync_directory(folder)
        _take_place(beside, path)
    except BaseException:
        shutil.rmtree(beside, ignore_errors=True)
        raise


def _take_place(beside: Path, path: Path) -> None:
    replaced = path.with_name(f"{path.name}.replaced")
    if path.exists():
        shutil.rmtree(replaced, ignore_errors=True)
        path.rename(replaced)
    beside.rename(path)
    fsync_directory(path.parent)
    shutil.rmtree(replaced, ignore_errors=True)


def recover_directory(path: Path) -> None:
    """Finish what a kill interrupted in `directory_written_atomically`: bring the old folder back, sweep remains."""
    replaced = path.with_name(f"{path.name}.replaced")
    if replaced.exists():
        if path.exists():
            shutil.rmtree(replaced)
        else:
            replaced.rename(path)
            fsync_directory(path.parent)
    for remains in path.parent.glob(f"{path.name}{_BEING_WRITTEN}-*"):
        if remains.is_dir():
            shutil.rmtree(remains, ignore_errors=True)
        else:
            remains.unlink(missing_ok=True)


def write_manifest(folder: Path) -> None:
    """Write the SHA-256 and size of every file below `folder` into its manifest."""
    files = {
        file.relative_to(folder).as_posix(): {"sha256": sha256_of_file(file), "bytes": file.stat().st_size}
        for file in _files_below(folder)
        if file.name != MANIFEST
    }
    (folder / MANIFEST).write_text(json.dumps({"files": files}, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def manifest_fault(folder: Path, *, only: Container[str] | None = None) -> str | None:
    """Return what is wrong with `folder` against its manifest, or None if every file (or those of `only`) is whole."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        files = dict(manifest["files"])
    except FileNotFoundError:
        return f"{folder / MANIFEST} is missing"
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as fault:
        return f"{folder / MANIFEST} cannot be read ({fault})"
    for name, expected in files.items():
        if not isinstance(expected, dict) or Path(name).is_absolute() or ".." in Path(name).parts:
            return f"{folder / MANIFEST} has an impossible entry {name!r}"
        file = folder / name
        if only is not None and name not in only:
            continue
        if not file.is_file():
            return f"{file} is missing"
        if file.stat().st_size != expected.get("bytes"):
            return f"{file} has {file.stat().st_size:,} bytes where its manifest says {expected.get('bytes')}"
        if sha256_of_file(file) != expected.get("sha256"):
            return f"{file} does not match its SHA-256"
    return None


def sha256_of_file(path: Path) -> str:
    """Return the SHA-256 of a file's bytes, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def fsync_directory(folder: Path) -> None:
    """Flush a folder's list of names to the disk, where the system can do that (Windows cannot)."""
    if sys.platform == "win32":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def locked(path: Path, *, purpose: str) -> Iterator[None]:
    """Hold the lock file at `path` while the block runs; refuse when another process holds it.

    The system releases the lock when the process ends, however it ends, so a stale file never blocks anyone.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+", encoding="utf-8") as file:
        if not _try_lock(file.fileno()):
            file.seek(0)
            holder = file.read().strip() or "unknown"
            raise RunError(
                f"{path.parent} is in use by another process ({holder}), which is {purpose}. "
                "Wait for it or stop it; two processes must not write the same folder."
            )
        file.truncate(0)
        file.write(f"process {os.getpid()}")
        file.flush()
        yield


def _try_lock(descriptor: int) -> bool:
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _files_below(folder: Path) -> list[Path]:
    return sorted(file for file in folder.rglob("*") if file.is_file())


def _fsync_file(path: Path) -> None:
    with path.open("rb+") as file:
        os.fsync(file.fileno())
