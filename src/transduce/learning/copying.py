"""Copies of the lessons for a learner to work in: `transduce lessons DIR`."""

from importlib.resources import files as package_files
from pathlib import Path

from transduce.files import make_folder, write_atomically


def lessons_folder() -> Path:
    """Return the folder of the package with the notebooks."""
    return Path(str(package_files("transduce") / "lessons"))


def copy_lessons(folder: Path) -> tuple[list[Path], list[Path]]:
    """Copy the notebooks into a folder; return those written, and those that were there and stay as they are."""
    make_folder(folder)
    written, kept = list[Path](), list[Path]()
    for notebook in sorted(lessons_folder().glob("*.py")):
        place = folder / notebook.name
        if place.exists():
            kept.append(place)
        else:
            write_atomically(place, notebook.read_bytes())
            written.append(place)
    return written, kept
