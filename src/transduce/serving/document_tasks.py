"""The process that parses and fills documents: strangers' files, apart from the models, within limits.

`DocumentProcesses` starts it as `python -m transduce.serving.document_tasks MEGABYTES SECONDS`. The messages, each
request followed by its answer:

    {"task": "gaps", "kind": k, "languages": [source, target], "content": base64}
        {"tried": [...], "tagged": [...], "untagged": [...]}
    {"task": "fill", …, "copies_tags": bool, "rules": {...}, "translations": [...]}
        {"content": base64, "filled": n, "unsure": n, "kept": n, "left": [...], "reasons": {...}}

or {"error": …} if the user can fix the document, {"too_much": …} at a limit, {"fault": …} for a bug. MEGABYTES is the
memory beyond that at the start, SECONDS the processor time of one request; beyond either, the process ends.
"""

import base64
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

from transduce.data.formats.pair import Selection
from transduce.documents.document import Document
from transduce.documents.filling import FillingRules, document_of, fill_at_once, gaps_of, texts_with_tags
from transduce.errors import TransduceError
from transduce.serving.frames import read_frame, write_frame
from transduce.serving.logs import source_lines
from transduce.translator import Alternative, Translation


def find_gaps(request: dict[str, Any]) -> dict[str, Any]:
    """Return the untranslated texts of a document with their tags and without, and some to try the model on."""
    document, kind = _document(request), request["kind"]
    tried = texts_with_tags(document, kind)
    tagged, untagged = ([text for gap in gaps_of(form, kind) for text in gap.texts] for form in _forms(document, tried))
    return {"tried": tried, "tagged": tagged, "untagged": untagged}


def fill(request: dict[str, Any]) -> dict[str, Any]:
    """Return a document with the translations of its texts inserted."""
    translations = [_translation(own) for own in request["translations"]]
    content, report = fill_at_once(
        replace(_document(request), copies_tags=request["copies_tags"]),
        request["kind"],
        lambda texts, first: translations[first : first + len(texts)],
        rules=FillingRules(**request["rules"]),
    )
    return {
        "content": base64.b64encode(content).decode("ascii"),
        "filled": report.filled,
        "unsure": report.unsure,
        "kept": report.kept,
        "left": [{"where": where, "reason": reason} for where, reason, _ in report.left],
        "reasons": dict(report.reasons()),
    }


TASKS = {"gaps": find_gaps, "fill": fill}


def _forms(document: Document, tried: list[str]) -> tuple[Document, Document]:
    """Return the document for a model that copies tags and for one that does not; the same if it has none."""
    return document, replace(document, copies_tags=False) if tried else document


def _document(request: dict[str, Any]) -> Document:
    source, target = request["languages"]
    kind = request["kind"]
    return document_of(
        base64.b64decode(request["content"]),
        kind,
        path=Path(f"file.{kind}"),  # the name in error messages; there is no such file
        selection=Selection(source, target),
    )


def _translation(content: dict[str, Any]) -> Translation:
    """Return the translation that `worker.translate` turned into JSON; its source is not needed."""
    alternatives = tuple(
        Alternative(**{**own, "tokens": tuple(own["tokens"]), "sentences": ()}) for own in content["alternatives"]
    )
    names = ("missing", "surplus", "missing_numbers", "doubts")
    lists = {name: tuple(content[name]) for name in names}
    return Translation("", alternatives, **lists, confidence=content["confidence"], refusal=content["refusal"])


def serve(inlet: BinaryIO, outlet: BinaryIO, *, megabytes: int, seconds: int) -> None:
    """Answer requests until the input closes."""
    _limit_memory(megabytes)
    while (request := read_frame(inlet)) is not None:
        _limit_processor_time(seconds)
        answer = _answer(request, megabytes=megabytes)
        write_frame(outlet, answer)
        if "too_much" in answer:
            return


def _answer(request: dict[str, Any], *, megabytes: int) -> dict[str, Any]:
    try:
        return TASKS[request["task"]](request)
    except MemoryError:
        return {"too_much": f"more than {megabytes:,} MB of memory"}
    except TransduceError as error:
        return {"error": str(error)}
    except Exception as fault:  # a bug: its place in the code without its message, which could quote the user's text
        return {"fault": f"{type(fault).__name__} at {' < '.join(source_lines(fault))}"}


def _limit_memory(megabytes: int) -> None:
    if sys.platform != "linux":  # elsewhere the address space cannot be limited, or its size is not known
        return
    import resource

    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    size = pages * os.sysconf("SC_PAGE_SIZE") + (megabytes << 20)
    resource.setrlimit(resource.RLIMIT_AS, (size, size))


def _limit_processor_time(seconds: int) -> None:
    """Let the system end this process after so many more seconds of processor time."""
    if sys.platform == "win32":
        return
    import resource
    import time

    _, most = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time()) + 1 + seconds, most))


def main() -> None:
    """Answer requests from stdin on stdout; redirect everything else that is printed to stderr."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    outlet = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    serve(sys.stdin.buffer, outlet, megabytes=int(sys.argv[1]), seconds=int(sys.argv[2]))


if __name__ == "__main__":
    main()
