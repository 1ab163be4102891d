"""A translator whose answers are known: words in capitals, placeholders as they were. Laws of filling need no model."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from transduce.data.formats import Selection
from transduce.documents.filling import FillingReport, fill_document, journal_header, read_document
from transduce.documents.journal import Journal
from transduce.documents.kinds import format_of
from transduce.text.placeholders import SYMBOL, missing, protect, restore, surplus
from transduce.translator import Translation
from transduce.translator.translation import Alternative

Fill = Callable[..., tuple[bytes, FillingReport]]
Answer = Callable[[str], str]


def in_capitals(text: str) -> str:
    return text.upper()


def translated_by(answer: Answer, text: str) -> Translation:
    """Do what a translator does around its model: symbols in, symbols out."""
    protected = protect(text)
    output = answer(protected.text)
    alternative = Alternative(restore(output, protected.originals), 0.0, 0.0, (), is_finished=True)
    return Translation(text, (alternative,), missing=missing(protected, output), surplus=surplus(protected, output))


@pytest.fixture
def fill(tmp_path: Path) -> Fill:
    """Fill in a document given by name and content; `answer` stands for the model."""

    def filled(
        name: str,
        content: str | bytes,
        *,
        answer: Answer = in_capitals,
        overwrites: bool = False,
        selection: Selection = Selection("en", "de"),  # noqa: B008
    ) -> tuple[bytes, FillingReport]:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        kind = format_of(path)
        assert kind is not None
        document = read_document(path, kind, selection=selection, overwrites=overwrites)

        def translate(texts: Sequence[str], first: int) -> list[Translation]:
            return [translated_by(answer, text) for text in texts]

        with (tmp_path / "journal").open("w+b") as file:
            journal = Journal(file, journal_header(document, {}), name="journal")
            return fill_document(document, kind, translate, journal=journal)

    return filled


@pytest.fixture
def without_symbols() -> Answer:
    """A model that loses every placeholder."""
    return lambda text: SYMBOL.sub("", text).upper()
