"""Write constraints.hashes.txt: the packages of constraints.txt with the SHA-256 of each file that pip may install.

    python deploy/hash_constraints.py --index URL_OF_A_PACKAGE_INDEX [--extra FILE...]

    pip install --require-hashes -r constraints.hashes.txt      # what installs nothing else

Wheels for Python 3.11 to 3.13 count, and the source archive where a version has no
wheel. `--extra` adds files that the index does not have, such as a CPU build of torch.
"""

import argparse
import hashlib
import re
import urllib.request
from collections.abc import Iterable
from pathlib import Path

EXTRAS = {"coverage": "[toml]"}
"""Extras by which other packages ask for a package: pip takes its pinned version and hashes under that name only."""
ROOT = Path(__file__).parents[1]
USABLE = re.compile(r"-(py3|py2\.py3|cp311|cp312|cp313|cp3\d+-abi3|cp3\d+\.\S*)-")
PLATFORMS = re.compile(r"(any|manylinux\S*_(x86_64|aarch64)\S*|macosx_\S+|win_amd64)\.whl$")


def files_of(index: str, name: str, version: str) -> Iterable[tuple[str, str]]:
    """Yield name and SHA-256 of the files of one version that pip may install here."""
    with urllib.request.urlopen(f"{index.rstrip('/')}/{_same(name)}/", timeout=60) as answer:
        page = answer.read().decode("utf-8")
    files = [(Path(href).name, digest) for href, digest in re.findall(r'href="([^"#]+)#sha256=([0-9a-f]{64})"', page)]
    own = [(file, digest) for file, digest in files if _same(file).startswith(f"{_same(name)}-{_same(version)}-")]
    wheels = [(file, digest) for file, digest in own if USABLE.search(file) and PLATFORMS.search(file)]
    yield from wheels or own


def _same(name: str) -> str:
    """Return a name as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def main() -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--index", required=True, help="a package index, such as the one that pip is set up with")
    parser.add_argument("--extra", type=Path, nargs="*", default=[], help="files beyond those of the index")
    given = parser.parse_args()
    extras = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in given.extra}
    lines = [
        "# The packages of constraints.txt with hashes, by deploy/hash_constraints.py. pip: --require-hashes -r FILE"
    ]
    for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines():
        name, separator, version = line.partition("==")
        if not separator or line.startswith("#"):
            continue
        files = dict(files_of(given.index, name, version))
        files |= {file: own for file, own in extras.items() if file.startswith(f"{name}-{version}")}
        if not files:
            raise SystemExit(f"the index has no file of {name} {version}")
        hashes = " \\\n".join(f"    --hash=sha256:{own}" for own in sorted(set(files.values())))
        lines.append(f"{name}{EXTRAS.get(name, '')}=={version} \\\n{hashes}")
    (ROOT / "constraints.hashes.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
