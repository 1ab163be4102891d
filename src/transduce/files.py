"""Atomic and durable writes of files and folders, manifests, and locks. Every durable write goes through this module.

After a crash or a power cut, a path has its old content or its new content, never a part: we write under a temporary
name in the same folder, flush the content to disk, rename it to its final name, and flush the folder so that the new
name is on disk too.

A path must have one writer at a time: where two processes could write it, the writer holds `locked`. Readers need no
lock.
"""

import contextlib
import errno
import hashlib
import json
import os
import platform
import re
import shutil
import stat
import sys
import tempfile
import threading
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from transduce.errors import RunError

MANIFEST = "manifest.json"
_LARGEST_JSON = 1 << 20
_MOST_DIGITS = 18  # what fits 64 bits; Python's own limit is 4,300, and a product of two such numbers exceeds it
_BEING_WRITTEN = ".being-written"
_BEING_REPLACED = ".being-replaced"
_NO_SPACE = "Free some space on that disk, or choose a folder on another one; what was there before is unchanged."
_NO_ACCESS = "Give yourself access to it, close the program that has it open, or choose another folder."
_DISK_FAILS = "The disk, or the connection to it, fails: repair it or use another; what was saved before is unchanged."
_NO_PLACE = "Choose another name or another folder."
_REMEDIES = {
    errno.ENOSPC: _NO_SPACE,
    errno.EDQUOT: _NO_SPACE,
    errno.EACCES: _NO_ACCESS,
    errno.EPERM: _NO_ACCESS,
    errno.EROFS: _NO_ACCESS,
    errno.EIO: _DISK_FAILS,
    errno.EFBIG: "Raise the limit on the size of files (ulimit -f), or choose another disk.",
    **dict.fromkeys((errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG, errno.ELOOP), _NO_PLACE),
}
_WINDOWS_DISK_FULL = 112
# A system or network disk that cannot flush folders reports one of these; we go on without the flush.
_CANNOT_FLUSH_FOLDERS = {errno.EINVAL, errno.EBADF, errno.EACCES, errno.ENOTSUP}


def write_atomically(path: Path, content: bytes | str) -> None:
    """Replace the content of the file at `path`; if that fails, the file is unchanged."""
    with file_written_atomically(path) as file:
        file.write(content.encode("utf-8") if isinstance(content, str) else content)


@contextlib.contextmanager
def file_written_atomically(path: Path) -> Iterator[BinaryIO]:
    """Yield a file to fill; after the block it moves to `path`, or is removed if the block fails."""
    temporary = _temporary_name(path)
    with disk_faults_explained(path):
        _require_file_name(path)
        make_folder(path.parent)
        try:
            with temporary.open("wb") as file:
                yield file
                file.flush()
                _flush_to_disk(file.fileno())
            temporary.replace(path)
        except BaseException:
            _remove(temporary)
            raise
        fsync_directory(path.parent)


def require_place_for_file(path: Path) -> None:
    """Raise RunError if no file can be written at `path`; commands call this before work that takes long."""
    with disk_faults_explained(path):
        _require_file_name(path)
    require_place_for_folder(path.parent)


def require_place_for_folder(folder: Path) -> None:
    """Raise RunError if `folder` cannot be written or, if it is missing, cannot be created."""
    try:
        nearest = next(place for place in (folder.absolute(), *folder.absolute().parents) if place.exists())
        tempfile.TemporaryFile(dir=nearest).close()
    except OSError as fault:
        raise RunError(f"{folder} cannot be written: {fault.strerror}. {_NO_PLACE}") from fault


def _require_file_name(path: Path) -> None:
    # Renaming a file onto a device or a pipe would replace it: as root, even /dev/null.
    if path.exists() and not path.is_file():
        what = "a folder" if path.is_dir() else "a device or a pipe"
        raise RunError(f"{path} is {what}, not a file. {_NO_PLACE}")


@contextlib.contextmanager
def directory_written_atomically(path: Path) -> Iterator[Path]:
    """Yield an empty folder to fill; after the block it gets a manifest and moves to `path`, or is removed on failure.

    An existing `path` is replaced. If the process is killed between the two renames, the old folder is left under
    `<name>.being-replaced`, and `recover_directory` restores it.
    """
    temporary = _temporary_name(path)
    with disk_faults_explained(path):
        make_folder(path.parent)
        remove_leftovers(path.parent, only=path.name)
        temporary.mkdir()
        try:
            yield temporary
            readable = temporary.stat().st_mode & 0o666
            for file in _files_below(temporary):
                file.chmod(readable)  # safetensors ignores the umask and lets only the owner read
                _fsync_file(file)
            write_manifest(temporary)
            for folder in [*(entry for entry in temporary.rglob("*") if entry.is_dir()), temporary]:
                fsync_directory(folder)
            _move_into_place(temporary, path)
        except BaseException:
            _remove(temporary)
            raise


def _move_into_place(temporary: Path, path: Path) -> None:
    replaced = path.with_name(path.name + _BEING_REPLACED)
    is_in_place = False
    while not is_in_place:
        if os.path.lexists(path):
            _remove(replaced)
            path.rename(replaced)
        try:
            temporary.rename(path)
            is_in_place = True
        except OSError as fault:
            # A reader called recover_directory between our two renames and restored the old folder: try again.
            if fault.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                recover_directory(path)
                raise
    fsync_directory(path.parent)
    _remove(replaced)


def recover_directory(path: Path) -> None:
    """Restore the old folder if `directory_written_atomically` was killed between its two renames.

    Readers call this first. It deletes nothing, so it is safe while a writer runs.
    """
    replaced = path.with_name(path.name + _BEING_REPLACED)
    if replaced.exists() and not os.path.lexists(path):
        with disk_faults_explained(path):
            try:
                replaced.rename(path)
            except OSError:
                if not path.exists():  # else the writer was still running and has finished
                    raise
            fsync_directory(path.parent)


def remove_leftovers(folder: Path, *, only: str | None = None) -> None:
    """Restore old folders in `folder`, then delete what killed writers left there; `only` limits this to one name.

    It would also delete the files of a running writer, so the caller must hold the lock that writers hold.
    """
    name = re.escape(only) if only is not None else ".+"
    leftover = re.compile(rf"({name})({re.escape(_BEING_REPLACED)}|{re.escape(_BEING_WRITTEN)}-\d+-\d+)")
    for entry in sorted(folder.iterdir()):
        if found := leftover.fullmatch(entry.name):
            if found[2] == _BEING_REPLACED:
                recover_directory(folder / found[1])
            _remove(entry)


def write_manifest(folder: Path) -> None:
    """Write the manifest of `folder`: the SHA-256 and size of every file below it."""
    files = {
        file.relative_to(folder).as_posix(): {"sha256": sha256_of_file(file), "bytes": file.stat().st_size}
        for file in _files_below(folder)
        if file != folder / MANIFEST
    }
    write_atomically(folder / MANIFEST, json.dumps({"files": files}, indent=1, sort_keys=True) + "\n")


def manifest_fault(folder: Path, *, only: Collection[str] | None = None) -> str | None:
    """Return how `folder` differs from its manifest; None if all files, or those in `only`, are listed and intact."""
    try:
        files = read_json(folder, MANIFEST)["files"]
    except FileNotFoundError:
        return f"{folder / MANIFEST} is missing"
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as fault:
        return f"{folder / MANIFEST} cannot be read ({fault})"
    if not isinstance(files, dict):
        return f"{folder / MANIFEST} cannot be read (its files are not a table)"
    if unlisted := sorted(set(only or ()) - set(files)):
        return f"{folder / MANIFEST} does not list {unlisted[0]}"
    for name, expected in files.items():
        if not isinstance(expected, dict) or Path(name).anchor or ".." in Path(name).parts:
            return f"{folder / MANIFEST} has an invalid entry {name!r}"
        if only is None or name in only:
            fault_of_file = _fault_of_file(folder, name, expected)
            if fault_of_file is not None:
                return fault_of_file
    return None


def _fault_of_file(folder: Path, name: str, expected: dict[str, object]) -> str | None:
    file = folder / name
    try:
        require_regular(folder, name)
        size = file.stat().st_size
        if size != expected.get("bytes"):
            return f"{file} has {size:,} bytes, but its manifest says {expected.get('bytes')}"
        if sha256_of_file(file) != expected.get("sha256"):
            return f"{file} does not match its SHA-256"
    except FileNotFoundError:
        return f"{file} is missing"
    except (OSError, ValueError) as fault:
        return f"{file} cannot be read ({getattr(fault, 'strerror', None) or fault})"
    return None


def require_regular(folder: Path, name: str, *, most: int | None = None) -> None:
    """Raise ValueError unless `name` is a regular file inside `folder`, of at most `most` bytes.

    A folder from others may hold a pipe, which never ends, a device, or a link to a file elsewhere.
    """
    file = (folder / name).resolve(strict=True)
    if not file.is_relative_to(folder.resolve()):
        raise ValueError("it is a link to a place outside its folder")
    if not file.is_file():
        raise ValueError("it is not a regular file")
    if most is not None and file.stat().st_size > most:
        raise ValueError(f"it has {file.stat().st_size:,} bytes, and may have {most:,}")


def read_json(folder: Path, name: str) -> Any:  # noqa: ANN401 - any JSON
    """Return the content of a JSON file of a folder that may come from others; OSError or ValueError if unreadable."""
    require_regular(folder, name, most=_LARGEST_JSON)
    return json.loads((folder / name).read_text(encoding="utf-8"), parse_int=bounded_integer)


def bounded_integer(digits: str) -> int:
    """Return an integer of a JSON text; ValueError if no size, count or identifier can be as large."""
    if len(digits) > _MOST_DIGITS:
        raise ValueError(f"a number of {len(digits):,} digits")
    return int(digits)


def sha256_of_file(path: Path) -> str:
    """Return the SHA-256 of a file's bytes, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def fsync_directory(folder: Path) -> None:
    """Flush a folder's list of names to disk; do nothing on Windows, which cannot flush folders."""
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
    """Hold the lock file at `path` while the block runs; RunError if another process holds it.

    That error shows the holder's `purpose`, such as "training". The system releases the lock when the process ends,
    even if it is killed, so the file that stays behind blocks nothing.
    """
    with disk_faults_explained(path):
        make_folder(path.parent)
        # Without O_NOFOLLOW, a link in the place of the lock would let us overwrite the file that it names.
        flags = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | flags, 0o666)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise RunError(f"{path} is a device or a pipe, not a file. Delete it and start again.")
        if not _try_lock(descriptor, path=path):
            holder = os.read(descriptor, 1000).decode("utf-8", errors="replace").strip() or "just started"
            raise RunError(
                f"{path.parent} is in use by another process ({holder}). "
                "Wait for it or stop it: two processes must not write to the same folder."
            )
        with contextlib.suppress(OSError):  # on a full disk the holder's name is missing, but the lock holds
            os.ftruncate(descriptor, 0)
            os.write(descriptor, f"process {os.getpid()} on {platform.node()}, {purpose}\n".encode())
        yield
    finally:
        os.close(descriptor)


def _try_lock(descriptor: int, *, path: Path) -> bool:
    try:
        if sys.platform == "win32":
            import msvcrt

            # Windows locks bytes from the current position, and other processes cannot read them: lock one byte far
            # after the text that names the holder.
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
            "Put the folder on a disk that supports file locks, such as a local one."
        ) from fault
    return True


@contextlib.contextmanager
def disk_faults_explained(path: Path) -> Iterator[None]:
    """Turn errors of the disk that a user can fix (it is full, fails, or denies access) into a `RunError`."""
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
    # safetensors is written in Rust and raises its own type, with the number of the system's error in the text.
    found = re.search(r"\(os error (\d+)\)", str(fault))
    number = int(found[1]) if found else None
    return errno.ENOSPC if sys.platform == "win32" and number == _WINDOWS_DISK_FULL else number


def _temporary_name(path: Path) -> Path:
    return path.with_name(f"{path.name}{_BEING_WRITTEN}-{os.getpid()}-{threading.get_native_id()}")


def make_folder(folder: Path) -> None:
    """Create a folder and its missing parents, and flush each new name to disk."""
    if not folder.is_dir():
        make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        fsync_directory(folder.parent)


def _remove(path: Path) -> None:
    """Delete a file, a link or a whole folder; ignore failures, since leftovers do no harm."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            path.unlink()


def _files_below(folder: Path) -> list[Path]:
    return sorted(file for file in folder.rglob("*") if file.is_file())


def _fsync_file(path: Path) -> None:
    # Windows flushes only files opened for writing; elsewhere the file may be read-only.
    with path.open("rb+" if sys.platform == "win32" else "rb") as file:
        _flush_to_disk(file.fileno())


def _flush_to_disk(descriptor: int) -> None:
    if sys.platform == "darwin":
        import fcntl

        # On macOS fsync leaves the data in the drive's cache. This call does not, but not every disk supports it.
        with contextlib.suppress(OSError):
            fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
            return
    os.fsync(descriptor)
