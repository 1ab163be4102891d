"""Translations as the lines that `transduce translate` writes: text, or JSON, perhaps with word pairs."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from transduce.errors import shown

if TYPE_CHECKING:
    from transduce.translator import Translation, Translator
    from transduce.translator.word_alignment import WordAligner, WordPairs


def word_aligner(translator: "Translator") -> "WordAligner":
    """Return what finds the word pairs of a translator's translations."""
    from transduce.translator.word_alignment import WordAligner

    return WordAligner(translator)


@dataclass(frozen=True)
class LineWriter:
    """Writes a translation as a line of text or JSON, with its word pairs if there is an aligner."""

    is_json: bool
    aligner: "WordAligner | None"

    def line(self, translation: "Translation", *, is_terminal: bool) -> str:
        """Return the line; control codes are shown as such on a terminal."""
        from transduce.translator.word_alignment import pharaoh

        pairs = self.aligner.pairs(translation) if self.aligner else None
        if self.is_json:
            return _json_line(translation, pairs)
        line = _text_line(translation, is_terminal=is_terminal)
        return line if pairs is None else f"{line} ||| {pharaoh(pairs)}".rstrip()


def _json_line(translation: "Translation", pairs: "WordPairs | None") -> str:
    import dataclasses
    import json

    found = {**dataclasses.asdict(translation), "text": translation.text}
    return json.dumps(found if pairs is None else {**found, "alignments": pairs}, ensure_ascii=False)


def _text_line(translation: "Translation", *, is_terminal: bool) -> str:
    from transduce.translator.lines import on_one_line

    texts = [on_one_line(alternative.text) for alternative in translation.alternatives]
    if is_terminal:
        texts = [shown(text) for text in texts]
    return texts[0] if len(texts) == 1 else "\t".join(text.replace("\t", " ") for text in texts)
