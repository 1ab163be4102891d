"""The gap of a segment with tags in it, in both its forms: with the tags as placeholders, and without tags."""

from collections.abc import Callable, Sequence

from transduce.documents.document import Gap, Splice
from transduce.documents.marked_text import MarkedText, Part, has_words
from transduce.documents.tag_projection import untagged_gap


def marked_gap(location: str, parts: Sequence[Part], write: Callable[[list[Part]], list[Splice]]) -> Gap | None:
    """Return the gap of a segment, or None if it has no words; `write` returns the splices for its translated parts."""
    marked = MarkedText.of(parts)
    if not has_words(marked.inside):
        return None
    return Gap(
        location,
        (marked.text,),
        lambda translations: write(marked.with_translation(translations[0])),
        untagged=untagged_gap(location, marked, write),
    )
