"""Imports of files as an attacker would send them, in a process of their own: `python -m … FOLDER COUNT SEED`.

One to three files of the folder are damaged, with their structure in mind, then imported. The last line printed is
JSON: how many were read, the slowest import, the most memory of one, and what must not happen: other errors, and
events of Python that run code.
"""

import gc
import io
import json
import random
import resource
import shutil
import struct
import sys
import tempfile
import time
import traceback
import warnings
import zipfile
from pathlib import Path

from tests.faults.mutations import bytewise, header_of_tensors, protobuf, structural

from transduce.errors import ModelError
from transduce.importing.formats import import_model
from transduce.model_directory import Languages

FORBIDDEN = ("os.system", "os.exec", "os.posix_spawn", "subprocess", "pickle.find_class", "exec", "compile", "socket")
LIBRARY = f'file "{Path(io.__file__).parent}'
TEXT = "the dog runs ﬁne, eine Katze läuft…"


def mutated(path: Path, chance: random.Random) -> bytes:
    """Return the content of a file with its structure damaged."""
    content = path.read_bytes()
    if content[:2] == b"PK":
        return _zip(content, chance)
    if chance.random() < 0.2:
        return bytewise(content, chance)
    if path.suffix == ".safetensors":
        return header_of_tensors(content, chance)
    if path.suffix in (".spm", ".model"):
        return protobuf(content, chance)
    if path.suffix == ".json":
        return structural(content, chance)
    if path.suffix == ".bin":
        return _numbers(content, chance)
    return bytewise(content, chance)


def _zip(content: bytes, chance: random.Random) -> bytes:
    """Return an archive with members damaged, missing, twice or under other names, or with its own bytes damaged."""
    if chance.random() < 0.2:
        return bytewise(content, chance)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = [(name, archive.read(name)) for name in archive.namelist()]
    place = chance.randrange(len(members))
    pickled = [n for n, (name, _) in enumerate(members) if name.endswith("data.pkl")]
    place = pickled[0] if pickled and chance.random() < 0.7 else place
    name, own = members[place]
    match chance.randrange(8):
        case 0:
            del members[place]
        case 1:
            members[place] = (chance.choice(("../../x", "/etc/x", name.upper(), name + "\0")), own)
        case 2 if own:
            members[place] = (name, own[: len(own) // 2] + bytes(chance.choice((1, 1 << 20))) + own)
        case _:
            worse = structural(own, chance) if name.endswith(".json") else _numbers(own, chance)
            members[place] = (name, worse)
    packed = io.BytesIO()
    kind = zipfile.ZIP_DEFLATED if chance.random() < 0.3 else zipfile.ZIP_STORED
    with zipfile.ZipFile(packed, "w", kind) as archive:
        for name, own in members:
            archive.writestr(name, own)
    return packed.getvalue()


def _numbers(content: bytes, chance: random.Random) -> bytes:
    """Return bytes with a number near their beginning, where sizes are, made extreme; or damaged bytewise."""
    data = bytearray(content)
    if len(data) < 16 or chance.random() < 0.4:
        return bytewise(content, chance) if data else b"\0"
    for _ in range(chance.choice((1, 1, 2))):
        place = chance.randrange(min(len(data) - 8, chance.choice((64, 2_000, len(data)))))
        number = chance.choice((0, 1, 2**15, 2**31 - 1, 2**32 - 1, 2**40, 2**63 - 1, 2**64 - 1, chance.randrange(4096)))
        width = chance.choice((1, 2, 4, 8))
        data[place : place + width] = struct.pack("<Q", number)[:width]
    return bytes(data)


def imported(folder: Path, destination: Path) -> bool:
    """Import the folder, or the one package in it, and cut a text; return whether it was read."""
    package = next(iter(sorted(folder.glob("*.argosmodel"))), folder)
    try:
        with warnings.catch_warnings(action="error"):
            model = import_model(package, destination, Languages(source="en", target="de"))
            for side in (model.tokenizers.source, model.tokenizers.target):
                side.decode(side.encode(TEXT))
    except ModelError:
        return False
    return True


def most_memory(*, from_now: bool = False) -> int:
    """Return the most memory that this process has had, in kB; on Linux, `from_now` on if that was asked before."""
    status, reset = Path("/proc/self/status"), Path("/proc/self/clear_refs")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if from_now:
        reset.write_text("5")
    return int(next(line.split()[1] for line in status.read_text().splitlines() if line.startswith("VmHWM")))


def main(original: Path, count: int, seed: int) -> None:
    """Import `count` damaged copies and print the result."""
    events: list[str] = []
    with tempfile.TemporaryDirectory() as place:
        imported(original, Path(place) / "warm")
        gc.freeze()  # else each collection below visits all modules, which takes half of the campaign's time
        is_watching = [True]

        def listen(event: str, arguments: tuple[object, ...]) -> None:
            is_library = event == "exec" and LIBRARY in str(arguments[0])  # Python loads a codec, say
            if is_watching and event.startswith(FORBIDDEN) and not is_library:
                events.append(f"{event} {arguments!r:.300}")

        sys.addaudithook(listen)
        slowest, read, grown, errors = 0.0, 0, 0, list[str]()
        for number in range(seed, seed + count):
            chance, folder, made = random.Random(number), Path(place) / "copy", Path(place) / "made"
            shutil.copytree(original, folder)
            files = sorted(path for path in folder.rglob("*") if path.is_file())
            for path in chance.sample(files, min(len(files), chance.choice((1, 1, 1, 3)))):
                path.write_bytes(mutated(path, chance))
            before, start = most_memory(from_now=True), time.process_time()  # without the memory for the damage
            try:
                read += imported(folder, made)
            except Exception:  # the campaign reports it
                errors.append(f"{number}: {traceback.format_exc(limit=-3)}")
            slowest, grown = max(slowest, time.process_time() - start), max(grown, most_memory() - before)
            gc.collect()  # the caches of a tokenizer refer to it: count the memory of one import, not of many
            shutil.rmtree(folder)
            shutil.rmtree(made, ignore_errors=True)
        is_watching.clear()
    print(json.dumps({"read": read, "slowest": slowest, "kilobytes": grown, "errors": errors[:5], "events": events}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
