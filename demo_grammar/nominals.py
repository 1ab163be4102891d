"""Noun phrases, names and pronouns, drawn to fit their place in a clause."""

from demo_grammar.lexicon import Adjective, Noun
from demo_grammar.numerals import english_number, german_number
from demo_grammar.sampler import WordSampler
from demo_grammar.tree import (
    ALL,
    BARE,
    EVERY,
    HE,
    IT,
    MANY,
    SHE,
    SOME,
    THE,
    THEY,
    THIS,
    WE,
    A,
    Determiner,
    I,
    Name,
    Nominal,
    NounPhrase,
    PrepositionalPhrase,
    Pronoun,
)

PRONOUNS = (I, I, HE, HE, SHE, SHE, WE, THEY)
_PEOPLE = frozenset({"person", "adult", "young"})
_OWNED = frozenset({"clothes", "small", "vehicle", "kin", "pet", "device", "carried", "home"})
_SINGULAR = (THE, THE, THE, THE, THE, A, A, A, THIS)
_PLURAL = (THE, THE, THE, BARE, BARE, MANY, SOME, THIS, ALL)
_PEOPLE_PLURAL = (THE, THE, MANY, SOME, THIS, ALL)


def person(sampler: WordSampler, *, with_pronouns: bool = True) -> Nominal:
    """Return a person: a pronoun, a name or a noun phrase."""
    draw = sampler.chance.below(100)
    if with_pronouns and draw < 27:
        return sampler.chance.one(PRONOUNS)
    if draw < 50:
        return name(sampler)
    if draw < 54:
        return two_names(sampler)
    return noun_phrase(sampler, sampler.noun("person"))


def plain_person(sampler: WordSampler, *, other_than: Nominal | None = None) -> Nominal:
    """Return a person whose sex needs no pronoun to state it, and who is not `other_than`."""
    while True:
        found = person(sampler, with_pronouns=False)
        if isinstance(found, NounPhrase):
            if "role" not in found.noun.classes:
                return found
        elif not (isinstance(found, Name) and isinstance(other_than, Name) and found.english in other_than.english):
            return found


def name(sampler: WordSampler) -> Name:
    """Return the first name of a person."""
    word = sampler.word("name")
    return Name(word.english, word.german, is_plural=False, is_female="she" in word.flags)


def two_names(sampler: WordSampler) -> Name:
    """Return the first names of two people."""
    first, second = name(sampler), name(sampler)
    while second.english == first.english:
        second = name(sampler)
    return Name(f"{first.english} and {second.english}", f"{first.german} und {second.german}", True, False)


def subject(sampler: WordSampler, classes: tuple[str, ...]) -> Nominal:
    """Return a subject: a person or thing of these classes."""
    if not _PEOPLE.isdisjoint(classes) and (len(classes) == 1 or sampler.chance.holds(0.7)):
        if sampler.chance.holds(0.6):
            return person(sampler)
        return noun_phrase(sampler, sampler.noun(classes[0]))
    return opening_phrase(sampler, sampler.noun(*classes))


def opening_phrase(sampler: WordSampler, noun: Noun) -> NounPhrase:
    """Return a phrase for the start of a sentence; it rarely lacks a determiner."""
    phrase = noun_phrase(sampler, noun)
    if phrase.determiner is BARE and sampler.chance.holds(0.9):
        return phrase._replace(determiner=SOME if phrase.is_plural else THE)
    return phrase


def noun_phrase(
    sampler: WordSampler,
    noun: Noun,
    *,
    owner: Pronoun | None = None,
    is_simple: bool = False,
    is_plural: bool | None = None,
) -> NounPhrase:
    """Return a phrase with `noun`; a simple one has the, a or nothing, which fit negations and questions."""
    chance = sampler.chance
    if is_plural is None:
        can_be_many = bool(noun.german_plural) and "single" not in noun.classes
        is_plural = can_be_many and chance.holds(0.12 if is_simple else 0.22)
    determiner = _determiner(sampler, noun, is_plural=is_plural, is_simple=is_simple, owner=owner)
    adjectives = attributes(sampler, noun) if chance.holds(0.33) else ()
    whole = None
    if determiner is THE:
        whole = _owner_phrase(sampler, noun)
    return NounPhrase(noun, determiner, is_plural, adjectives, whole)


def _owner_phrase(sampler: WordSampler, noun: Noun) -> NounPhrase | None:
    """Return the whole or the owner of the noun, or None: the roof of the house, the woman's umbrella."""
    if noun.whole and sampler.chance.holds(0.75):
        return NounPhrase(sampler.noun(*noun.whole))
    if not noun.whole and not _OWNED.isdisjoint(noun.classes) and sampler.chance.holds(0.1):
        owner = sampler.noun("man", "woman", "boy", "girl", "kin")
        return NounPhrase(owner, sampler.chance.one((I, WE)).possessive if "kin" in owner.classes else THE)
    return None


def attributes(sampler: WordSampler, noun: Noun) -> tuple[Adjective, ...]:
    """Return one adjective that fits the noun, rarely two, in the order of English and German."""
    fitting = sampler.lexicon.fitting[noun.key]
    if not fitting:
        return ()
    first = sampler.chance.one(fitting)
    if sampler.chance.holds(0.9):
        return (first,)
    second = sampler.chance.one(fitting)
    if second.rank == first.rank or second.scale == first.scale:
        return (first,)
    return (first, second) if first.rank < second.rank else (second, first)


def _determiner(
    sampler: WordSampler, noun: Noun, *, is_plural: bool, is_simple: bool, owner: Pronoun | None
) -> Determiner:
    chance, classes = sampler.chance, noun.classes
    if "sky.one" in classes or "sea" in classes:
        return THE
    if not _OWNED.isdisjoint(classes):
        if owner is not None and chance.holds(0.3):
            return owner.possessive
        if chance.holds(0.06):
            return _named_owner(sampler)
    if "kin" in classes:
        return chance.one((I, I, WE)).possessive
    if "mass" in classes:
        is_bare = not classes.isdisjoint({"language", "game"}) or chance.holds(0.6)
        return BARE if is_bare else THE
    if is_simple:
        if is_plural:
            return THE if "person" in classes else chance.one((THE, BARE))
        return chance.one((THE, THE, A))
    if is_plural:
        if chance.holds(0.2):
            return _count(sampler, noun)
        return chance.one(_PEOPLE_PLURAL if "person" in classes else _PLURAL)
    if chance.holds(0.04) and "role" in classes:
        return EVERY
    return chance.one(_SINGULAR)


def _named_owner(sampler: WordSampler) -> Determiner:
    owner = name(sampler)
    while owner.german[-1] in "sxz":  # their genitive needs an apostrophe
        owner = name(sampler)
    return Determiner(f"{owner.english}'s", f"{owner.english}'s", f"{owner.german}s", "")


def _count(sampler: WordSampler, noun: Noun) -> Determiner:
    few = "person" in noun.classes or sampler.chance.holds(0.6)
    return number(sampler.chance.between(2, 12 if few else 99))


def number(value: int) -> Determiner:
    """Return a number word as a determiner: twenty-three apples."""
    return Determiner("", english_number(value), german_number(value), "", is_definite=False)


def other_person(sampler: WordSampler, actor: Nominal, classes: tuple[str, ...], *, is_simple: bool = False) -> Nominal:
    """Return a person other than `actor` to whom a later "she" or "her" cannot refer by mistake."""
    chance = sampler.chance
    is_unstated = sex_is_unstated(actor)
    if "person" in classes and chance.holds(0.25):
        found = name(sampler)
        if not (isinstance(actor, Name) and found.english in actor.english) and not (is_unstated and found.is_female):
            return found
    if "person" in classes and isinstance(actor, Name | Pronoun) and chance.holds(0.25):
        return chance.one([p for p in PRONOUNS if isinstance(actor, Name) or _may_meet(actor, p)])
    noun = different_noun(sampler, actor, classes)
    confuses = "role" in noun.classes and (is_unstated or _may_be_she(actor))
    confuses = confuses or (is_unstated and "she" in noun.classes)
    if confuses and "single" in noun.classes:
        noun = sampler.noun("child", "tourist", "guest", "neighbour")
    return noun_phrase(sampler, noun, is_simple=is_simple, is_plural=True if confuses else None)


def sex_is_unstated(tree: Nominal) -> bool:
    """Return whether only a pronoun can state the sex of this person: one teacher."""
    return isinstance(tree, NounPhrase) and "role" in tree.noun.classes and not tree.is_plural


def different_noun(sampler: WordSampler, actor: Nominal, classes: tuple[str, ...]) -> Noun:
    """Return a noun of these classes, if possible not the noun of the actor."""
    noun = sampler.noun(*classes)
    if isinstance(actor, NounPhrase) and noun.english == actor.noun.english:
        others = [other for other in sampler.nouns(*classes) if other.english != noun.english]
        return sampler.chance.one(others) if others else noun
    return noun


def _may_meet(actor: Pronoun, other: Pronoun) -> bool:
    """Return whether the two pronouns need no reflexive: "I see me" does."""
    return actor.english != other.english and {actor.english, other.english} != {"I", "we"}


def _may_be_she(tree: Nominal) -> bool:
    if isinstance(tree, Name):
        return tree.is_female
    if isinstance(tree, NounPhrase):
        return not tree.is_plural and not tree.noun.classes.isdisjoint({"she", "role"})
    return tree is SHE


def settle_pronoun(sampler: WordSampler, tree: Nominal) -> tuple[Nominal, Pronoun | None]:
    """Return the nominal and its pronoun, or None; the sex of a teacher is decided here (Lehrer or Lehrerin)."""
    if isinstance(tree, Pronoun):
        return tree, tree
    if isinstance(tree, Name):
        return tree, THEY if tree.is_plural else SHE if tree.is_female else HE
    if not isinstance(tree, NounPhrase) or tree.determiner is EVERY:
        return tree, None
    if tree.is_plural:
        return tree, THEY
    classes = tree.noun.classes
    if "role" in classes:
        if sampler.chance.holds(0.5):
            return tree._replace(noun=sampler.lexicon.nouns[tree.noun.key + ".f"]), SHE
        return tree._replace(noun=tree.noun._replace(classes=classes - {"role"})), HE
    if tree.noun.gender == "n" and not classes.isdisjoint({"person", "infant"}):
        return tree, None  # both es and sie are used for das Mädchen
    if "she" in classes or "he" in classes:
        return tree, SHE if "she" in classes else HE
    return tree, IT[tree.noun.gender]


def definite(tree: Nominal, *, determiner: Determiner = THE) -> Nominal:
    """Return the nominal with `determiner` in place of an indefinite one."""
    if isinstance(tree, NounPhrase) and not tree.determiner.is_definite:
        return tree._replace(determiner=determiner)
    return tree


def location(sampler: WordSampler, noun: Noun, *, moving: bool = False) -> PrepositionalPhrase:
    """Return the noun as a place, or as a destination if `moving`."""
    preposition = noun.goal if moving else noun.location
    assert preposition is not None, f"{noun.key} is no place"
    determiner = THE if sampler.chance.holds(0.85) else sampler.chance.one((THIS, A))
    adjectives = attributes(sampler, noun) if sampler.chance.holds(0.15) else ()
    return PrepositionalPhrase(preposition, NounPhrase(noun, determiner, adjectives=adjectives))
