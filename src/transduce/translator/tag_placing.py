"""Tags for a model that cannot copy them: it translates a sentence without tags, and word alignment puts them back.

Each word of the output has a share: how much of its attention to words goes to those between two tags of the source.
The pair encloses the run of words with the largest sum of (share - 1/2), so that words that lean elsewhere stay
outside. A tag without a partner stands before the word that leans most on the word after it in the source; if it
touches only the word before it, after the word that leans most on that one. A word that both sides have, such as a
name, leans on itself.

The attention is the mean over the heads of the layer that `inspection/alignment.py` names.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transduce.engine import FrozenNetwork
from transduce.inspection.alignment import between_words, layer_for_alignment
from transduce.inspection.tokens import Token, tokens_of_ids, tokens_of_text
from transduce.networks.stepwise import Stepwise
from transduce.text.placeholders import RESERVED, SYMBOL, Protected
from transduce.text.tokenizer_pair import TokenizerPair

Attention = Callable[[Sequence[int], Sequence[int]], NDArray[np.float32]]
"""Returns the weights of the tokens of an output over the tokens of its source, shape (T, S)."""
Place = tuple[int, int]
"""Start and end in a text. [code points]"""


def attention_of(stepper: Stepwise[Any]) -> Attention | None:
    """Return what aligns words: the core, if it computes the only model."""
    if not isinstance(stepper, FrozenNetwork):
        return None
    return partial(stepper.attention, layer=layer_for_alignment(stepper.config.decoder_depth))


TAG = re.compile(r"<(/?)([A-Za-z][\w:.-]*)[^>]*?(/?)>")
_TAG_OR_SYMBOL = re.compile(f"{SYMBOL.pattern}|{TAG.pattern}")
_OPENED_BY = {"ept": "bpt", "ex": "bx", "ec": "sc"}
"""Elements of TMX and XLIFF that stand alone and end what another one begins."""
_MARKS = r"[.,:;!?…。，：！？\"'“”„‘’«»()\[\]]"
_MARKS_FIRST, _MARKS_LAST = re.compile(rf"{_MARKS}*+"), re.compile(rf"(?<!{_MARKS}){_MARKS}*$")
_JOINS = frozenset("-'’")
_MOST_WORDS, _MOST_TAGS = 300, 50  # with more, the tags go to the end, so that no text takes long


@dataclass(frozen=True)
class Tag:
    """A tag of a sentence, or a pair of tags: as the text has it, and its place in the text without tags."""

    opening: str
    closing: str
    """Empty if the tag has no partner."""
    start: int
    end: int
    parent: int | None
    """The number of the innermost pair that encloses it."""


@dataclass(frozen=True)
class TaglessSentence:
    """A sentence without its tags, and the tags in the order in which they open."""

    text: str
    tags: tuple[Tag, ...]


def with_tight_tags(output: str, protected: Protected) -> str:
    """Return an output, with symbols, whose tags enclose no space at an edge where those of the source enclose none.

    The model may write <b>42 </b> for <b>42</b>. The space goes to the other side of the tag.
    """
    for symbol, original in zip(RESERVED, protected.originals, strict=False):
        tag = TAG.fullmatch(original)
        if tag is None or tag[3] or symbol not in output:
            continue
        if tag[1] and not re.search(rf"\s{symbol}", protected.text):
            output = re.sub(rf" +{symbol}(?=(\w?))", lambda end: f"{symbol}{' ' if end[1] else ''}", output)  # noqa: B023
        elif not tag[1] and not re.search(rf"{symbol}\s", protected.text):
            output = re.sub(rf"(\w?){symbol} +", lambda start: f"{start[1]}{' ' if start[1] else ''}{symbol}", output)  # noqa: B023
    return output


def without_tags(protected: Protected, *, stand_ins: Mapping[str, str]) -> TaglessSentence:
    """Return a sentence without its tags; a symbol that has a stand-in becomes it, be it a tag's or not."""
    text, done = "", 0
    matches = list(_TAG_OR_SYMBOL.finditer(protected.text))
    names = ["" if match[0] in stand_ins else _name(match[0], protected) for match in matches]
    partners = _partners(names)
    tags: list[Tag] = []
    opened: list[tuple[int, int]] = []  # the number of each open pair in `tags`, and of its closing match
    for number, (match, name) in enumerate(zip(matches, names, strict=True)):
        text += protected.text[done : match.start()]
        done = match.end()
        if not name:
            text += stand_ins.get(match[0], match[0])
            continue
        after = protected.text[done : done + 1]
        if opened and opened[-1][1] == number:
            pair = opened.pop()[0]
            tag = tags[pair]
            inner = text[tag.start :]
            touches_word = text[: tag.start][-1:].isalnum() or after.isalnum()
            if pair == len(tags) - 1 and (not inner or (touches_word and inner.isdigit())):  # as in m<sup>2</sup>
                text = text[: tag.start]
                tags[pair] = replace(tag, opening=tag.opening + inner + match[0])
            else:
                tags[pair] = replace(tag, closing=match[0], end=len(text))
            continue
        opening = match[0]
        if number in partners:
            opened.append((len(tags), partners[number]))
        elif text[-1:].isalnum() and after.isalnum():
            text += " "
        elif text[-1:] in ("", " ") and after == " ":
            opening, done = opening + " ", done + 1
        elif text[-1:] == " " and not after:
            opening, text = " " + opening, text[:-1]
        parent = next((pair for pair, _ in reversed(opened) if pair != len(tags)), None)
        tags.append(Tag(opening, "", len(text), len(text), parent))
    return TaglessSentence(text + protected.text[done:], tuple(tags))


def _name(written: str, protected: Protected) -> str:
    """Return the name of the tag that a text has or has a symbol for, with a slash if it closes; empty for others."""
    number = RESERVED.index(written) if written in RESERVED else len(protected.originals)
    tag = TAG.fullmatch(protected.originals[number] if number < len(protected.originals) else written)
    if tag is None:
        return ""
    if tag[3]:
        return f"/{_OPENED_BY[tag[2]]}" if tag[2] in _OPENED_BY else tag[2] if tag[2] in _OPENED_BY.values() else "/"
    return tag[1] + tag[2]


def _partners(names: Sequence[str]) -> dict[int, int]:
    """Return the number of the closing tag for the number of its opening tag; pairs do not cross."""
    partners: dict[int, int] = {}
    opened: list[int] = []
    for number, name in enumerate(names):
        if not name.startswith("/"):
            opened += [number] if name else []
        elif opened and name == f"/{names[opened[-1]]}":
            partners[opened.pop()] = number
    return partners


def with_tags(sentence: TaglessSentence, output: Sequence[int], tokenizers: TokenizerPair, attention: Attention) -> str:
    """Return the text of an output for a sentence without tags, with the tags in it."""
    source = tokens_of_text(
        tokenizers.source, Protected(sentence.text, ()), original=sentence.text, has_end=tokenizers.source_end
    )
    text, target = tokens_of_ids(tokenizers.target, output, originals=RESERVED)
    if len(sentence.tags) > _MOST_TAGS:
        return text + "".join(tag.opening + tag.closing for tag in sentence.tags)
    weights_TS = attention([token.id for token in source], [token.id for token in target])
    aligned = _AlignedWords.of(sentence.text, text, source, target, weights_TS)
    places: dict[int, Place] = {}
    for number in sorted(range(len(sentence.tags)), key=lambda number: not sentence.tags[number].closing):
        places[number] = _place(aligned, number, sentence.tags, places)
    return _inserted(text, sentence.tags, places, None, (0, len(text)))


@dataclass(frozen=True)
class _AlignedWords:
    """The words of a sentence and of its output, without punctuation, and how much each leans on each."""

    source_text: str
    text: str
    source: list[Place]
    target: list[Place]
    shares_TS: NDArray[np.float32]
    """A row for each word of the output; it sums to 1 at most."""

    @classmethod
    def of(
        cls, source_text: str, text: str, source: Sequence[Token], target: Sequence[Token], weights: NDArray[np.float32]
    ) -> "_AlignedWords":
        soft = between_words(weights, source_words=_numbers(source), target_words=_numbers(target))
        places_S, places_T = _places_of_words(source, source_text), _places_of_words(target, text)
        is_word_S = [_is_word(source_text[slice(*place)]) for place in places_S]
        shares_TS = np.array(soft, dtype=np.float32).reshape(len(places_T), len(places_S))[:, is_word_S]
        shares_TS /= np.maximum(shares_TS.sum(axis=1, keepdims=True), np.finfo(np.float32).tiny)
        places_S = [place for place, is_word in zip(places_S, is_word_S, strict=True) if is_word]
        _let_same_words_lean_on_themselves(
            shares_TS, [source_text[slice(*place)] for place in places_S], [text[slice(*place)] for place in places_T]
        )
        words: list[Place] = []
        rows: list[NDArray[np.float32]] = []
        for (start, end), row in zip(places_T, shares_TS, strict=True):
            if not _is_word(text[start:end]):
                continue
            if words and text[words[-1][1] : start] in _JOINS:  # a part of a word like "E-Mail"
                begin, middle = words.pop()
                row = ((middle - begin) * rows.pop() + (end - start) * row) / (middle - begin + end - start)
                start = begin
            words.append((start, end))
            rows.append(row)
        return cls(
            source_text, text, places_S, words, np.array(rows, dtype=np.float32).reshape(len(rows), len(places_S))
        )

    def best_run(self, tag: Tag, *, fits: Callable[[Place], bool]) -> Place | None:
        """Return the words of the output that a pair of tags encloses."""
        inside_S = [max(0, min(end, tag.end) - max(start, tag.start)) / (end - start) for start, end in self.source]
        excess_T = self.shares_TS @ np.array(inside_S, dtype=np.float32) - 0.5
        best: tuple[float, Place] | None = None
        total, first = 0.0, -1  # of the best run that ends at the word before, and its first word
        for number, (start, end) in enumerate(self.target):
            excess = float(excess_T[number])
            if first >= 0 and total > 0 and fits((self.target[number - 1][0], end)):
                total += excess
            elif fits((start, end)):
                total, first = excess, number
            else:
                first = -1
            if first >= 0 and (best is None or total > best[0]):
                best = total, (self.target[first][0], end)
        return best[1] if best else None

    def position(self, tag: Tag) -> int:
        """Return the position of a tag that has no partner."""
        before, after = self.source_text[: tag.start], self.source_text[tag.start :]
        previous = [number for number, (_, end) in enumerate(self.source) if end <= tag.start]
        following = [number for number, (start, _) in enumerate(self.source) if start >= tag.start]
        touches_before = before[-1:].strip() and not after[:1].isalnum()
        if previous and (touches_before or not following):
            end = self.target[int(self.shares_TS[:, previous[-1]].argmax())][1]
            marks = _MARKS_FIRST.match(self.text, end)
            return marks.end() if marks and not before[-1].isalnum() else end
        return self.target[int(self.shares_TS[:, following[0]].argmax())][0] if following else 0


def _place(aligned: _AlignedWords, number: int, tags: Sequence[Tag], places: Mapping[int, Place]) -> Place:
    """Return where a tag goes: inside its parent, outside its siblings. A pair with no place left encloses nothing."""
    tag = tags[number]
    parent = (0, len(aligned.text)) if tag.parent is None else places[tag.parent]
    if not aligned.source or not 0 < len(aligned.target) <= _MOST_WORDS:
        return parent[1], parent[1]
    taken = [place for other, place in places.items() if tags[other].parent == tag.parent]
    if not tag.closing:
        position = min(max(aligned.position(tag), parent[0]), parent[1])
        return next(((start, start) for start, end in taken if start < position < end), (position, position))

    def fits(place: Place) -> bool:
        is_inside = parent[0] <= place[0] and place[1] <= parent[1]
        return is_inside and not any(place[0] < end and start < place[1] for start, end in taken)

    place = aligned.best_run(tag, fits=fits)
    if place is None:
        return parent[1], parent[1]
    wider = _with_edges(aligned.text, place, aligned.source_text[tag.start : tag.end])
    return wider if fits(wider) else place


def _with_edges(text: str, place: Place, enclosed: str) -> Place:
    """Return the place with the marks and the space beside it, if the text between the tags has such at its edge."""
    start, end = place
    first, last = _MARKS_FIRST.match(enclosed.lstrip()), _MARKS_LAST.search(enclosed.rstrip())
    if first and first[0] and (marks := _MARKS_LAST.search(text, 0, start)):
        start = marks.start()
    if last and last[0] and (marks := _MARKS_FIRST.match(text, end)):
        end = marks.end()
    start -= enclosed[:1].isspace() and text[:start][-1:].isspace()
    end += enclosed[-1:].isspace() and text[end : end + 1].isspace()
    return start, end


def _inserted(text: str, tags: Sequence[Tag], places: Mapping[int, Place], parent: int | None, within: Place) -> str:
    """Return a part of a text with the tags of one parent in it."""
    written, done = "", within[0]
    for place, number in sorted((place, number) for number, place in places.items() if tags[number].parent == parent):
        inner = _inserted(text, tags, places, number, place)
        written += text[done : place[0]] + tags[number].opening + inner + tags[number].closing
        done = place[1]
    return written + text[done : within[1]]


def _let_same_words_lean_on_themselves(
    shares_TS: NDArray[np.float32], source: Sequence[str], target: Sequence[str]
) -> None:
    """Change the rows of words that both sides have, such as names and numbers, and what others lean on these."""
    is_same_TS = np.array([[not t.islower() and s == t for s in source] for t in target]).reshape(shares_TS.shape)
    shares_TS[:, is_same_TS.any(axis=0)] = 0.0
    for row, is_same in zip(shares_TS, is_same_TS, strict=True):
        if is_same.any():
            row[:] = is_same / is_same.sum()


def _is_word(text: str) -> bool:
    return any(character.isalnum() or character in RESERVED for character in text)


def _numbers(tokens: Sequence[Token]) -> list[int | None]:
    return [token.word for token in tokens]


def _places_of_words(tokens: Sequence[Token], text: str) -> list[Place]:
    """Return the place of each word, without the space before it."""
    places: list[Place] = []
    for token in tokens:
        if token.word == len(places):
            start = token.start
            while start < token.end and text[start].isspace():
                start += 1
            places.append((start, token.end))
        elif token.word is not None:
            places[-1] = places[-1][0], token.end
    return places
