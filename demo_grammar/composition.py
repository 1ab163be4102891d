"""Streams of sentences: all kinds with their frequencies, and long sentences made by nesting clauses."""

from collections.abc import Callable, Iterator

from demo_grammar import dialogue, joining, predicates, senses, sentences
from demo_grammar.chance import Chance
from demo_grammar.nominals import sex_is_unstated
from demo_grammar.sampler import WordSampler
from demo_grammar.tree import SHE, NounPhrase, Sentence, nominals

_KINDS: tuple[tuple[int, Callable[[WordSampler], Sentence]], ...] = (
    (30, sentences.statement),
    (10, sentences.fronted),
    (3, sentences.object_first),
    (5, sentences.passive),
    (10, sentences.reported),
    (4, sentences.infinitive),
    (17, joining.with_subordinate),
    (6, joining.joined),
    (3, sentences.existence),
    (6, predicates.quality),
    (3, predicates.comparison),
    (2, predicates.profession),
    (4, predicates.measure),
    (5, dialogue.yes_or_no),
    (6, dialogue.open_question),
    (7, dialogue.addressed),
    (4, dialogue.command),
    (6, senses.ambiguous),
)
_WEIGHTED_KINDS = tuple(kind for weight, kind in _KINDS for _ in range(weight))


def compose(seed: int, *, stream: str) -> Iterator[Sentence]:
    """Yield sentences without end; a seed and a stream always give the same sentences."""
    chance = Chance(seed, stream=stream)
    sampler = WordSampler(chance)
    while True:
        tree = chance.one(_WEIGHTED_KINDS)(sampler)
        if is_clear(tree):
            yield tree


def compose_long(seed: int, *, stream: str) -> Iterator[Sentence]:
    """Yield sentences without end that nest more clauses than those of `compose`."""
    sampler = WordSampler(Chance(seed, stream=stream))
    while True:
        tree = joining.nested(sampler)
        if is_clear(tree):
            yield tree


def is_clear(tree: Sentence) -> bool:
    """Return False if "she" or "her" could refer to a person of unstated sex, who is masculine: she met the teacher."""
    has_unstated_sex, has_she = False, False
    for nominal in nominals(tree):
        has_unstated_sex = has_unstated_sex or sex_is_unstated(nominal)
        is_hers = isinstance(nominal, NounPhrase) and nominal.determiner is SHE.possessive
        has_she = has_she or nominal is SHE or is_hers
    return not (has_unstated_sex and has_she)
