"""All kinds of sentences together, each as often as it shall occur, and the long ones made by nesting."""

from collections.abc import Callable, Iterator

from transduce.demo import joining, predicates, senses, sentences, talk
from transduce.demo.chance import Chance
from transduce.demo.nominals import hides_sex
from transduce.demo.tree import SHE, NounPhrase, Sentence, nominals
from transduce.demo.world import World

_KINDS: tuple[tuple[int, Callable[[World], Sentence]], ...] = (
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
    (5, talk.yes_or_no),
    (6, talk.open_question),
    (7, talk.addressed),
    (4, talk.command),
    (6, senses.ambiguous),
)
_DEALT = tuple(kind for weight, kind in _KINDS for _ in range(weight))


def compose(seed: int, *, stream: str) -> Iterator[Sentence]:
    """Yield sentences without end, the same ones for the same seed and stream."""
    chance = Chance(seed, stream=stream)
    world = World(chance)
    while True:
        tree = chance.one(_DEALT)(world)
        if is_clear(tree):
            yield tree


def compose_long(seed: int, *, stream: str) -> Iterator[Sentence]:
    """Yield sentences with more clauses inside each other than any that `compose` makes."""
    world = World(Chance(seed, stream=stream))
    while True:
        tree = joining.nested(world)
        if is_clear(tree):
            yield tree


def is_clear(tree: Sentence) -> bool:
    """Return whether no "she" or "her" could be taken for somebody who is meant to be a man: she met the teacher."""
    hides, tells = False, False
    for nominal in nominals(tree):
        hides = hides or hides_sex(nominal)
        is_hers = isinstance(nominal, NounPhrase) and nominal.determiner is SHE.possessive
        tells = tells or nominal is SHE or is_hers
    return not (hides and tells)
