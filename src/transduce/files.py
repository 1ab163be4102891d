"""Durable files: write beside, flush, rename, manifest, lock. Every durable write goes through here.

A name that exists is whole. Whoever pulls the plug finds either the old content or the new, never a part:
content is written under a temporary name in the same folder, flushed to the disk, renamed over its place, and
the folder itself is flushed so that the new name survives too.

A name has one writer at a time: where two processes could meet, the writer holds `locked`. Readers need no lock.
"""

import contextlib
import errno
import hashlib
import json
import os
import platform
import re
import shutil
import sys
import threading
from collections.abc import Container, Iterator
from pathlib import Path

from transduce.errors import RunError

MANIFEST = "manifest.json"
_BEING_WRITTEN = ".being-written"
_BEING_REPLACED = ".being-replaced"
_NO_SPACE = "Free some space on that disk, or choose a folder on another; what was there before is untouched."
_NO_ACCESS = "Give yourself access to it, close the program that has it open, or choose another folder."
_DISK_FAILS = "The disk, or the way to it, fails: mend it or move to another; what was saved before stays as it was."
_REMEDIES = {
    errno.ENOSPC: _NO_SPACE,
    errno.EDQUOT: _NO_SPACE,
    errno.EACCES: _NO_ACCESS,
    errno.EPERM: _NO_ACCESS,
    errno.EROFS: _NO_ACCESS,
    errno.EIO: _DISK_FAILS,
}
_WINDOWS_DISK_FULL = 112
# Where a system or a network disk cannot flush folders it says so with one of these, and there is no more to be done.
_CANNOT_FLUSH_FOLDERS = {errno.EINVAL, errno.EBADF, errno.EACCES, errno.ENOTSUP}


def write_atomically(path: Path, content: bytes | str) -> None:
    """Replace the file at `path` by `content`, or leave it as it was."""
    data = content.encode("utf-8") if isinstance(content, str) else content
    beside = _beside(path)
    with disk_faults_explained(path):
        try:
            with beside.open("wb") as file:
                file.write(data)
                file.flush()
                _flush_to_disk(file.fileno())
            os.replace(beside, path)  # noqa: PTH105 - Path.replace hides which of the two names an error is about
        except BaseException:
            _remove(beside)
            raise
        fsync_directory(path.parent)


@contextlib.contextmanager
def directory_written_atomically(path: Path) -> Iterator[Path]:
    """Yield an empty folder to fill; on success it takes its place at `path` with a manifest, else it is removed.

    An existing `path` is replaced. On a power cut between the two renames the old folder waits under
    `<name>.being-replaced`, and `recover_directory` brings it back.
    """
    beside = _beside(path)
    with disk_faults_explained(path):
        make_folder(path.parent)
        sweep(path.parent, only=path.name)
        beside.mkdir()
        try:
            yield beside
            readable = beside.stat().st_mode & 0o666
            for file in _files_below(beside):
                file.chmod(readable)  # safetensors lets only its owner read, whatever the umask says
                _fsync_file(file)
            write_manifest(beside)
            for folder in [*(entry for entry in beside.rglob("*") if entry.is_dir()), beside]:
                fsync_directory(folder)
            _take_place(beside, path)
        except BaseException:
            _remove(beside)
            raise


def _take_place(beside: Path, path: Path) -> None:
    replaced = path.with_name(path.name + _BEING_REPLACED)
    is_in_place = False
    while not is_in_place:
        if os.path.lexists(path):
            _remove(replaced)
            path.rename(replaced)
        try:
            beside.rename(path)
            is_in_place = True
        except OSError as fault:
            # A reader's recover_directory between our two renames has put the old folder back: move it aside again.
            if fault.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                recover_directory(path)
                raise
    fsync_directory(path.parent)
    _remove(replaced)


def recover_directory(path: Path) -> None:
    """Bring the old folder back if a kill struck between the two renames of `directory_written_atomically`.

    Readers call this first. It deletes nothing, so it is safe beside a writer at work.
    """
    replaced = path.with_name(path.name + _BEING_REPLACED)
    if replaced.exists() and not os.path.lexists(path):
        with disk_faults_explained(path):
            try:
                replaced.rename(path)
            except OSError:
                if not path.exists():  # else the writer was alive and has finished meanwhile
                    raise
            fsync_directory(path.parent)


def sweep(folder: Path, *, only: str | None = None) -> None:
    """Clear what killed writers left in `folder` (of the name `only`, if given), after bringing old folders back.

    It would take the ground from under a writer at work, so hold the lock that writers hold.
    """
    name = re.escape(only) if only is not None else ".+"
    remains = re.compile(rf"({name})({re.escape(_BEING_REPLACED)}|{re.escape(_BEING_WRITTEN)}-\d+-\d+)")
    for entry in sorted(folder.iterdir()):
        if found := remains.fullmatch(entry.name):
            if found[2] == _BEING_REPLACED:
                recover_directory(folder / found[1])
            _remove(entry)


def write_manifest(folder: Path) -> None:
    """Write the SHA-256 and size of every file below `folder` into its manifest."""
    files = {
        file.relative_to(folder).as_posix(): {"sha256": sha256_of_file(file), "bytes": file.stat().st_size}
        for file in _files_below(folder)
        if file != folder / MANIFEST
    }
    write_atomically(folder / MANIFEST, json.dumps({"files": files}, indent=1, sort_keys=True) + "\n")


def manifest_fault(folder: Path, *, only: Container[str] | None = None) -> str | None:
    """Return what is wrong with `folder` against its manifest, or None if every file (or those of `only`) is whole."""
    try:
        files = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))["files"]
    except FileNotFoundError:
        return f"{folder / MANIFEST} is missing"
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as fault:
        return f"{folder / MANIFEST} cannot be read ({fault})"
    if not isinstance(files, dict):
        return f"{folder / MANIFEST} cannot be read (its files are not a table)"
    for name, expected in files.items():
        if not isinstance(expected, dict) or Path(name).anchor or ".." in Path(name).parts:
            return f"{folder / MANIFEST} has an impossible entry {name!r}"
        if only is None or name in only:
            fault_of_file = _fault_of_file(folder / name, expected)
            if fault_of_file is not None:
                return fault_of_file
    return None


def _fault_of_file(file: Path, expected: dict[str, object]) -> str | None:
    try:
        if not file.is_file():
            return f"{file} is missing"
        size = file.stat().st_size
        if size != expected.get("bytes"):
            return f"{file} has {size:,} bytes where its manifest says {expected.get('bytes')}"
        if sha256_of_file(file) != expected.get("sha256"):
            return f"{file} does not match its SHA-256"
    except OSError as fault:
        return f"{file} cannot be read ({fault.strerror})"
    return None


def sha256_of_file(path: Path) -> str:
    """Return the SHA-256 of a file's bytes, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def fsync_directory(folder: Path) -> None:
    """Flush a folder's list of names to the disk, where the system can do that (Windows cannot)."""
    if sys.platform == "win32":
        return
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            _flush_to_disk(descriptor)
        finally:
            os.close(descriptor)
    except OSError as fault:
        if fault.errno not in _CANNOT_FLUSH_FOLDERS:
            raise


@contextlib.contextmanager
def locked(path: Path, *, purpose: str) -> Iterator[None]:
    """Hold the lock file at `path` while the block runs; refuse when another process holds it.

    `purpose` says what the holder does ("training") and is shown to whoever is refused. The system releases the
    lock when the process ends, however it ends, so a stale file never blocks anyone; the file itself stays.
    """
    with disk_faults_explained(path):
        make_folder(path.parent)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        if not _try_lock(descriptor, path=path):
            holder = os.read(descriptor, 1000).decode("utf-8", errors="replace").strip() or "which has just started"
            raise RunError(
                f"{path.parent} is in use by another process ({holder}). "
                "Wait for it or stop it; two processes must not write the same folder."
            )
        with contextlib.suppress(OSError):  # a full disk cannot take the name down, but the lock holds all the same
            os.ftruncate(descriptor, 0)
            os.write(descriptor, f"process {os.getpid()} on {platform.node()}, {purpose}\n".encode())
        yield
    finally:
        os.close(descriptor)


def _try_lock(descriptor: int, *, path: Path) -> bool:
    try:
        if sys.platform == "win32":
            import msvcrt

            # Windows locks bytes, from the present position on, and then nobody else can read them: take one far
            # behind the text that names the holder.
            os.lseek(descriptor, 1 << 30, os.SEEK_SET)
            try:
                msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
            finally:
                os.lseek(descriptor, 0, os.SEEK_SET)
        else:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as fault:
        if fault.errno in (errno.EAGAIN, errno.EACCES, errno.EDEADLK):
            return False
        raise RunError(
            f"{path} cannot be locked: {fault.strerror}. "
            "Keep the folder on a disk that has file locks, such as a local one."
        ) from fault
    return True


@contextlib.contextmanager
def disk_faults_explained(path: Path) -> Iterator[None]:
    """Turn the disk's faults that a user can cure into a `RunError`: it is full, failing, or somebody else's."""
    try:
        yield
    except RunError:
        raise
    except Exception as fault:
        number = _system_error_number(fault)
        if number not in _REMEDIES:
            raise
        name = getattr(fault, "filename", None) or path
        raise RunError(f"{name}: {os.strerror(number)}. {_REMEDIES[number]}") from fault


def _system_error_number(fault: Exception) -> int | None:
    if isinstance(fault, OSError):
        return fault.errno
    # safetensors is written in Rust and wraps the system's fault in a type of its own, with its number in the text.
    found = re.search(r"\(os error (\d+)\)", str(fault))
    number = int(found[1]) if found else None
    return errno.ENOSPC if sys.platform == "win32" and number == _WINDOWS_DISK_FULL else number


def _beside(path: Path) -> Path:
    return path.with_name(f"{path.name}{_BEING_WRITTEN}-{os.getpid()}-{threading.get_native_id()}")


def make_folder(folder: Path) -> None:
    """Make a folder and those above it, and flush each new name."""
    if not folder.is_dir():
        make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        fsync_directory(folder.parent)


def _remove(path: Path) -> None:
    """Remove a file, a link or a whole folder; what is absent or will not go is left, for it hides no name."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            path.unlink()


def _files_below(folder: Path) -> list[Path]:
    return sorted(file for file in folder.rglob("*") if file.is_file())


def _fsync_file(path: Path) -> None:
    # Windows flushes only what is open for writing; elsewhere a read-only file must be flushed too.
    with path.open("rb+" if sys.platform == "win32" else "rb") as file:
        _flush_to_disk(file.fileno())


def _flush_to_disk(descriptor: int) -> None:
    if sys.platform == "darwin":
        import fcntl

        # There fsync leaves the data in the drive's own memory; this call does not, but not every disk knows it.
        with contextlib.suppress(OSError):
            fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
            return
    os.fsync(descriptor)
