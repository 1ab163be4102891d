"""Documents are parsed in processes of their own: what exceeds a limit is refused, and the next request is answered."""

import asyncio
import base64
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from transduce.serving.document_process import DocumentProcesses
from transduce.serving.refusal import Refusal

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the limits are those of Linux")
SMALL = b"a cat\t\n"


def gaps(content: bytes, kind: str = "tsv") -> dict[str, Any]:
    encoded = base64.b64encode(content).decode("ascii")
    return {"task": "gaps", "kind": kind, "languages": ["en", "de"], "content": encoded}


def compute(processes: DocumentProcesses, *requests: dict[str, Any]) -> list[Any]:
    """Return each answer, or the Refusal in its place."""

    async def ask() -> list[Any]:
        try:
            return [(await asyncio.gather(processes.compute(own), return_exceptions=True))[0] for own in requests]
        finally:
            await processes.stop()

    return asyncio.run(ask())


def test_a_process_is_kept_for_the_next_request_and_errors_are_the_clients() -> None:
    small, broken, again = compute(
        DocumentProcesses(megabytes=256, seconds=20), gaps(SMALL), gaps(b'msgid "x\n', "po"), gaps(SMALL)
    )
    assert small == again == {"tried": [], "tagged": ["a cat"], "untagged": ["a cat"]}
    assert isinstance(broken, Refusal)
    assert broken.status_code == 400


def test_memory_beyond_the_limit_is_refused_and_the_next_request_answered() -> None:
    large = b"".join(b"a cat %d\t\n" % number for number in range(400_000))
    refused, small = compute(DocumentProcesses(megabytes=24, seconds=60), gaps(large), gaps(SMALL))
    assert isinstance(refused, Refusal)
    assert (refused.status_code, "24 MB of memory" in refused.detail) == (413, True)
    assert small["tagged"] == ["a cat"]


@pytest.mark.slow
def test_processor_time_beyond_the_limit_is_refused() -> None:
    large = b"".join(b"<p>a <b>cat</b> %d</p>\n" % number for number in range(200_000))
    refused, small = compute(DocumentProcesses(megabytes=2000, seconds=0), gaps(large, "html"), gaps(SMALL))
    assert isinstance(refused, Refusal)
    assert (refused.status_code, "0 s of processor time" in refused.detail) == (413, True)
    assert small["tagged"] == ["a cat"]


def test_a_cancelled_request_ends_its_process() -> None:
    async def cancel() -> set[str]:
        processes = DocumentProcesses(megabytes=2000, seconds=600)
        large = b"".join(b"<p>a <b>cat</b> %d</p>\n" % number for number in range(200_000))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(processes.compute(gaps(large, "html")), 1.5)
        return {place.name for place in Path("/proc").iterdir() if place.name.isdigit() and _is_ours(place)}

    assert asyncio.run(cancel()) == set()


def _is_ours(process: Path) -> bool:
    try:
        return f"PPid:\t{os.getpid()}\n" in (process / "status").read_text(encoding="ascii")
    except OSError:
        return False
