"""Requirements on the outputs for a sentence: its placeholders, its numbers, and the enforced terms of a glossary.

A placeholder is a symbol in the source (`text/placeholders.py`). A model that saw such symbols in training copies them.
For other models a symbol is noise: it comes back only if the search forces it, at an arbitrary place. So their
second search reads a *stand-in* in the place of each symbol: a word that the model is known to copy, such as a name
("Please open Boston"). The stand-in is required in the output, and becomes the symbol again. No word can stand for a
tag, except one that stands for a word itself, such as code: other tags are left out of such a source. They are put back
by word alignment (`tag_placing.py`), or without it required as symbols, a closing tag after its opening tag.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from transduce.decoding.constraints import Constraint, Constraints, Form, TermPlace
from transduce.decoding.hypothesis import Hypothesis
from transduce.text.normalization import WORD_MARK
from transduce.text.numbers import missing_numbers, other_writings
from transduce.text.placeholders import RESERVED, SYMBOL, Protected, missing, surplus
from transduce.text.tokenizer import Tokenizer
from transduce.text.tokenizer_pair import TokenizerPair
from transduce.text.word_edges import needs_edge
from transduce.translator.searching import Sentence
from transduce.translator.tag_placing import TAG, Attention, TaglessSentence, with_tags, without_tags
from transduce.translator.terminology import count_terms

_MOST_SPELLINGS = 1000
_TAGS_LIKE_WORDS = frozenset(["code", "kbd", "samp", "var", "x", "ph"])


@dataclass(frozen=True)
class Requirements:
    """What the outputs for one sentence must contain."""

    sentence: Sentence
    terms: tuple[str, ...] = ()
    """Enforced terms."""
    avoided: tuple[str, ...] = ()
    """Words that the terms replace."""
    keeps_placeholders: bool = False
    numbers: tuple[str, ...] = ()
    """The numbers that the first output lacks, as the source writes them."""

    def are_met_by(self, output: str) -> bool:
        """Return whether an output, with symbols for placeholders, has all that is required."""
        protected = self.sentence.protected
        if self.keeps_placeholders and (missing(protected, output) or surplus(protected, output)):
            return False
        if self.numbers and missing_numbers(protected.text, output):
            return False
        return not self.terms or count_terms(self.terms, self.sentence.without_foreign_symbols(output)) == len(
            self.terms
        )


@dataclass(frozen=True)
class SecondSearch:
    """The source and the constraints with which a sentence is searched again."""

    requirements: Requirements
    tokenizers: TokenizerPair
    stand_ins: tuple[str, ...]
    """Words that the model copies; empty if it copies symbols, or if no such words are known."""
    attention: Attention | None = None
    """What aligns words, if the network that translates can."""

    @property
    def sentence(self) -> Sentence:
        """The sentence with stand-ins in its source."""
        if not self._words and not self._leaves_tags_out:
            return self.requirements.sentence
        source = self._tagless.text if self.attention else SYMBOL.sub(self._written, self._protected.text)
        return replace(self.requirements.sentence, ids=tuple(self.tokenizers.encode_source(source)))

    def constraints(self) -> Constraints:
        """Return the constraints on the outputs of the second search."""
        own, target = self.requirements, self.tokenizers.target
        placeholders = self._placeholder_constraints() if own.keeps_placeholders else []
        numbers = [constraint_of(target, *other_writings(number)) for number in own.numbers]
        terms = [constraint_of(target, term) for term in own.terms]
        unused = target.symbols[len(own.sentence.protected.originals) :]
        words = [target.encode(word)[0] for word in self._words.values()]
        return Constraints(
            [*placeholders, *terms, *numbers],
            target.word_edges.without(unused),
            limited=[*target.symbols, *words] if own.keeps_placeholders else (),
            avoided=[
                tokens
                for word in (*own.avoided, *self._words.values())
                for tokens in spellings(word, target)
                if word in own.avoided or tokens != tuple(target.encode(word))  # a stand-in is written in one way
            ],
        )

    def with_symbols(self, found: Hypothesis) -> Hypothesis | None:
        """Return an output of the second search with its tags, and the symbols in the place of their stand-ins.

        None if it has a stand-in once more, cut into other tokens or garbled ("Bostern").
        """
        tokens, target = found.tokens, self.tokenizers.target
        if self.attention and self._leaves_tags_out and self._tagless.tags:
            text = with_tags(self._tagless, tokens, self.tokenizers, self.attention)
            tokens = (*target.encode(text), *tokens[len(tokens) - found.is_finished :])
        for symbol, word in self._words.items():
            tokens = _replaced(tokens, tuple(target.encode(word)), tuple(target.encode(symbol)))
            tokens = _replaced(tokens, tuple(target.encode_inside(word)), tuple(target.encode_inside(symbol)))
        left = target.decode(tokens)
        is_clean = not any(_has_stand_in(left, word) for word in self._words.values())
        return replace(found, tokens=tokens) if is_clean else None

    @property
    def _leaves_tags_out(self) -> bool:
        return bool(self.stand_ins or self.attention) and self.requirements.keeps_placeholders

    @property
    def _protected(self) -> Protected:
        return self.requirements.sentence.protected

    @cached_property
    def _tagless(self) -> TaglessSentence:
        return without_tags(self._protected, stand_ins=self._words)

    @cached_property
    def _words(self) -> dict[str, str]:
        """The stand-in of each symbol that has one."""
        protected = self.requirements.sentence.protected
        if not self._leaves_tags_out:
            return {}
        free = iter(word for word in self.stand_ins if word.casefold() not in protected.text.casefold())
        return {
            symbol: word
            for symbol, original in zip(RESERVED, protected.originals, strict=False)
            if _may_have_stand_in(original) and not re.search(rf"\w{symbol}|{symbol}\w", protected.text)
            if (word := next(free, ""))
        }

    def _written(self, match: re.Match[str]) -> str:
        original = self._original(match[0])
        return self._words.get(match[0], " " if original is not None and TAG.fullmatch(original) else match[0])

    def _original(self, symbol: str) -> str | None:
        originals, number = self.requirements.sentence.protected.originals, RESERVED.index(symbol)
        return originals[number] if number < len(originals) else None

    def _placeholder_constraints(self) -> list[Constraint]:
        protected, target = self.requirements.sentence.protected, self.tokenizers.target
        constraints: list[Constraint] = []
        opened: list[tuple[str, int]] = []
        for match in SYMBOL.finditer(protected.text):
            original = self._original(match[0])
            if original is None:
                continue
            tag, after = TAG.fullmatch(original), None
            if tag and self.attention and match[0] not in self._words:
                continue
            if tag and not tag[3]:
                if tag[1] and opened and opened[-1][0] == tag[2]:
                    after = opened.pop()[1]
                elif not tag[1]:
                    opened.append((tag[2], len(constraints)))
            word = self._words.get(match[0])
            plain = constraint_of(target, word) if word else _symbol_constraint(match, target)
            constraints.append(replace(plain, after=after))
        unprotected = [own for own in protected.unprotected if not (self.attention and TAG.fullmatch(own))]
        return constraints + [constraint_of(target, original) for original in unprotected]


def _may_have_stand_in(original: str) -> bool:
    """Return whether a word may stand for this placeholder: for anything but a tag, and for tags that are words."""
    tag = TAG.fullmatch(original)
    return tag is None or (bool(tag[3]) and tag[2] in _TAGS_LIKE_WORDS)


def _has_stand_in(text: str, word: str) -> bool:
    """Return whether a text has a stand-in, or a word that begins like one."""
    start = re.escape(word[: max(4, len(word) - 2)])
    return re.search(rf"{re.escape(word)}|\b{start}", text, re.IGNORECASE) is not None


def constraint_of(tokenizer: Tokenizer, *writings: str) -> Constraint:
    """Return the constraint that a term puts on the tokens of an output, given the ways to write it."""
    forms: dict[Form, None] = {}
    for term in writings:
        place = TermPlace.EDGE if needs_edge(term[0]) else TermPlace.INSIDE
        capital = term[0].upper() + term[1:]
        first = tuple(tokenizer.encode(term))
        has_mark = tokenizer.written(first[0]).startswith(WORD_MARK.encode())
        written = {
            (first, TermPlace.INSIDE if has_mark else place),
            (tuple(tokenizer.encode_inside(term)), place),
            *([(tuple(tokenizer.encode(capital)), TermPlace.START)] if capital != term else []),
        }
        forms |= dict.fromkeys(Form(*form, needs_edge_after=needs_edge(term[-1])) for form in sorted(written))
    return Constraint(tuple(forms))


def spellings(stem: str, tokenizer: Tokenizer) -> list[tuple[int, ...]]:
    """Return up to 1,000 token sequences that begin a word with `stem`: a model denied one of them uses another."""
    written = [tokenizer.written(token) for token in range(tokenizer.vocabulary_size)]
    ids = {text: token for token, text in enumerate(written) if text}
    whole = (WORD_MARK + stem).encode()
    ways: dict[int, list[tuple[int, ...]]] = {}
    for start in range(len(whole) - 1, -1, -1):
        last = [(token,) for token, text in enumerate(written) if text.startswith(whole[start:])]
        split = [
            (ids[whole[start:end]], *rest)
            for end in range(len(whole) - 1, start, -1)
            if whole[start:end] in ids
            for rest in ways[end]
        ]
        ways[start] = [*last, *split][:_MOST_SPELLINGS]
    return ways[0]


def _symbol_constraint(match: re.Match[str], tokenizer: Tokenizer) -> Constraint:
    """Return the constraint of a symbol, with spaces around it in the output where the source has spaces."""
    before, after = match.string[: match.start()][-1:], match.string[match.end() :][:1]
    has_edge = not after or not after.isalnum()
    marked = Form(tuple(tokenizer.encode(match[0])), needs_edge_after=has_edge)
    if not before or before.isspace():
        return Constraint((marked,))
    inside = Form(tuple(tokenizer.encode_inside(match[0])), needs_edge_after=has_edge)
    return Constraint((marked, inside))


def _replaced(tokens: Sequence[int], old: tuple[int, ...], new: tuple[int, ...]) -> tuple[int, ...]:
    written: list[int] = []
    position = 0
    while position < len(tokens):
        if tuple(tokens[position : position + len(old)]) == old:
            written += new
            position += len(old)
        else:
            written.append(tokens[position])
            position += 1
    return tuple(written)
