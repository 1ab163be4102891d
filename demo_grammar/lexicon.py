"""The lexicon: nouns, verbs, adjectives and other words, read from `lexicon.tsv` and checked.

An entry states which words it combines with. A noun belongs to classes (an apple is a fruit, a fruit is food), a verb
names the classes of its subject and objects, and an adjective names the classes of the nouns that it describes.
"""

import functools
from collections.abc import Iterator
from importlib import resources
from typing import Literal, NamedTuple, get_args

from demo_grammar.german_verbs import GermanVerb
from transduce.errors import DataError

Gender = Literal["m", "f", "n"]
FILE = "lexicon.tsv"
COLUMNS = ("kind", "key", "english", "english_forms", "german", "german_forms", "tags")


class Entry(NamedTuple):
    """One line of the file, split into its columns."""

    line: int
    kind: str
    key: str
    english: str
    english_forms: tuple[str, ...]
    german: str
    german_forms: tuple[str, ...]
    tags: tuple[str, ...]

    def option(self, name: str) -> tuple[str, ...]:
        """Return the values of the tag `name=a,b`, or () if the entry has none."""
        for tag in self.tags:
            if tag.startswith(name + "="):
                return tuple(tag.removeprefix(name + "=").replace("~", " ").split(","))
        return ()

    @property
    def flags(self) -> frozenset[str]:
        """The tags without a value."""
        return frozenset(tag for tag in self.tags if "=" not in tag)

    def fault(self, reason: str) -> DataError:
        """Return an error that names this line."""
        return DataError(f"{FILE}:{self.line}: {self.kind} {self.key!r}: {reason}")


class Preposition(NamedTuple):
    """A preposition in both languages, and the case that the German preposition governs."""

    english: str
    german: str
    case: Literal["accusative", "dative"]


class Noun(NamedTuple):
    """A noun in both languages; `weak` is the accusative and dative singular (der Junge, den Jungen)."""

    key: str
    english: str
    english_plural: str
    german: str
    gender: Gender
    german_plural: str
    genitive: str
    weak: str
    classes: frozenset[str]
    whole: tuple[str, ...]
    location: Preposition | None
    goal: Preposition | None


class EnglishVerb(NamedTuple):
    """The forms of an English verb, and the particle that follows it ("get" + "up")."""

    base: str
    third: str
    past: str
    participle: str
    progressive: str
    particle: str


class Verb(NamedTuple):
    """A verb in both languages, and the classes of nouns that can be its subject, objects and places."""

    key: str
    english: EnglishVerb
    german: GermanVerb
    subjects: tuple[str, ...]
    accusatives: tuple[str, ...]
    datives: tuple[str, ...]
    preposition: Preposition | None
    targets: tuple[str, ...]
    places: tuple[str, ...]
    goals: tuple[str, ...]
    put: tuple[str, ...]
    possible_places: tuple[str, ...]
    over: tuple[str, ...]
    manners: tuple[str, ...]
    scene: str
    flags: frozenset[str]


class Adjective(NamedTuple):
    """An adjective in both languages; German endings follow `stem` (teuer, ein teures Auto)."""

    key: str
    english: str
    english_comparative: str
    german: str
    stem: str
    german_comparative: str
    classes: frozenset[str]
    rank: int
    scale: str


class Word(NamedTuple):
    """A word or phrase without inflection: a name, a time, a manner, a conjunction."""

    key: str
    english: str
    german: str
    flags: frozenset[str]
    gender: str


class Clue(NamedTuple):
    """A predicate that fits one sense of an ambiguous noun: the finite verb in present and past, and the rest."""

    sense: str
    english: tuple[str, str]
    german: tuple[str, str]
    english_rest: str
    german_rest: str


class Lexicon(NamedTuple):
    """All words; `members` has the nouns of each class, `fitting` the adjectives that fit each noun."""

    nouns: dict[str, Noun]
    verbs: dict[str, Verb]
    adjectives: dict[str, Adjective]
    words: dict[str, tuple[Word, ...]]
    clues: tuple[Clue, ...]
    members: dict[str, tuple[Noun, ...]]
    fitting: dict[str, tuple[Adjective, ...]]


@functools.cache
def lexicon() -> Lexicon:
    """Return the lexicon of `lexicon.tsv`, read once."""
    return read_lexicon(resources.files(__package__).joinpath(FILE).read_text(encoding="utf-8"))


def read_lexicon(text: str) -> Lexicon:
    """Return the lexicon in `text`; a DataError names the line of the first fault."""
    entries = list(_entries(text))
    wider = {entry.key: entry.tags for entry in entries if entry.kind == "class"}
    named = {entry.key: entry for entry in entries if entry.kind == "noun"}
    nouns = {key: _noun(entry, wider) for key, entry in named.items()}
    for entry in named.values():
        if homonyms := [c for c in entry.flags if c in named and c not in named[c].flags]:
            raise entry.fault(f"class {homonyms[0]!r} is also a noun that is not of this class; rename the class.")
    members = _members(nouns)
    verbs = {entry.key: _verb(entry, members) for entry in entries if entry.kind == "verb"}
    adjectives = {entry.key: _adjective(entry, members) for entry in entries if entry.kind == "adjective"}
    fitting = {
        noun.key: tuple(a for a in adjectives.values() if not a.classes.isdisjoint(noun.classes))
        for noun in nouns.values()
    }
    words: dict[str, tuple[Word, ...]] = {}
    for entry in entries:
        if entry.kind not in {"class", "noun", "verb", "adjective", "clue"}:
            gender = entry.german_forms[0] if entry.german_forms else ""
            word = Word(entry.key, entry.english, entry.german, entry.flags, gender)
            words[entry.kind] = (*words.get(entry.kind, ()), word)
    clues = tuple(_clue(entry, nouns) for entry in entries if entry.kind == "clue")
    return Lexicon(nouns, verbs, adjectives, words, clues, members, fitting)


def _entries(text: str) -> Iterator[Entry]:
    seen: set[tuple[str, str]] = set()
    header_is_read = False
    for number, line in enumerate(text.split("\n"), start=1):
        if not line or line.startswith("#"):
            continue
        cells = line.split("\t")
        if len(cells) != len(COLUMNS):
            raise DataError(f"{FILE}:{number}: {len(cells)} columns where {len(COLUMNS)} are needed; separate by tabs.")
        if not header_is_read:
            header_is_read = True
            if tuple(cells) != COLUMNS:
                raise DataError(f"{FILE}:{number}: the first row must name the columns {', '.join(COLUMNS)}.")
            continue
        kind, key, english, english_forms, german, german_forms, tags = ("" if cell == "-" else cell for cell in cells)
        entry = Entry(
            number, kind, key, english, _forms(english_forms), german, _forms(german_forms), tuple(tags.split())
        )
        if (kind, key) in seen:
            raise entry.fault("the key is used twice; give one of them a sense, as in bank.river.")
        seen.add((kind, key))
        yield entry


def _forms(cell: str) -> tuple[str, ...]:
    return tuple("" if form == "-" else form for form in cell.split(", ")) if cell else ()


def _noun(entry: Entry, wider: dict[str, tuple[str, ...]]) -> Noun:
    gender, plural, genitive = (*entry.german_forms, "", "", "")[:3]
    if gender not in get_args(Gender):
        raise entry.fault(f"the gender is {gender!r}; it must be m, f or n.")
    if bool(plural) != bool(entry.english_forms):
        raise entry.fault("a plural must be given in both languages or in neither.")
    if gender != "f" and not genitive:
        raise entry.fault("a masculine or neuter noun needs its genitive.")
    classes = {entry.key, *entry.flags}
    while more := {w for c in classes for w in wider.get(c, ())} - classes:
        classes |= more
    oblique = genitive.removesuffix("s")
    return Noun(
        entry.key,
        entry.english,
        entry.english_forms[0] if entry.english_forms else "",
        entry.german,
        gender,  # type: ignore[arg-type]
        plural,
        genitive or entry.german,
        oblique if gender == "m" and oblique != entry.german and oblique.endswith("n") else entry.german,
        frozenset(classes),
        entry.option("of"),
        _place(entry, "loc", moving=False),
        _place(entry, "dir", moving=True),
    )


def _place(entry: Entry, name: str, *, moving: bool) -> Preposition | None:
    if not (value := entry.option(name)):
        return None
    english, _, german = value[0].partition(":")
    if german not in {"in", "an", "auf", "zu", "bei"}:
        raise entry.fault(f"{name}= must name a German preposition of place, not {german!r}.")
    return Preposition(english, german, "accusative" if moving and german in {"in", "an", "auf"} else "dative")


def _members(nouns: dict[str, Noun]) -> dict[str, tuple[Noun, ...]]:
    members: dict[str, list[Noun]] = {}
    for noun in nouns.values():
        for name in sorted(noun.classes):
            members.setdefault(name, []).append(noun)
    return {name: tuple(found) for name, found in members.items()}


def _verb(entry: Entry, members: dict[str, tuple[Noun, ...]]) -> Verb:
    if len(entry.english_forms) != 4 or len(entry.german_forms) != 4:
        raise entry.fault("a verb needs four forms in each language.")
    if entry.german_forms[3] not in {"haben", "sein"}:
        raise entry.fault(f"the auxiliary is {entry.german_forms[3]!r}; it must be haben or sein.")
    for name in ("s", "o", "d", "t", "at", "to", "put", "where", "over"):
        if unknown := [c for c in entry.option(name) if c not in members and not c.startswith("@")]:
            raise entry.fault(f"no noun is of class {unknown[0]!r}, which {name}= names.")
    base, _, particle = entry.english.partition(" ")
    preposition = None
    if option := entry.option("p"):
        english, german, case = option[0].split(":")
        particle = particle.removesuffix(english).strip()
        preposition = Preposition(english, german, "accusative" if case == "a" else "dative")
    prefix, _, infinitive = entry.german.rpartition("|")
    third, preterite, participle, auxiliary = entry.german_forms
    reflexive = {"a": "accusative", "d": "dative"}.get("".join(entry.option("reflexive")), "")
    english_forms = EnglishVerb(base, *entry.english_forms, particle)
    german_forms = GermanVerb.conjugated(
        infinitive, third=third, preterite=preterite, participle=participle, auxiliary=auxiliary
    )._replace(prefix=prefix, reflexive=reflexive)
    return Verb(
        entry.key,
        english_forms,
        german_forms,
        subjects=entry.option("s"),
        accusatives=entry.option("o"),
        datives=entry.option("d"),
        preposition=preposition,
        targets=entry.option("t"),
        places=entry.option("at"),
        goals=entry.option("to"),
        put=entry.option("put"),
        possible_places=entry.option("where"),
        over=entry.option("over"),
        manners=entry.option("how"),
        scene="".join(entry.option("scene")),
        flags=entry.flags,
    )


def _adjective(entry: Entry, members: dict[str, tuple[Noun, ...]]) -> Adjective:
    if unknown := [c for c in entry.flags if c not in members]:
        raise entry.fault(f"no noun is of class {unknown[0]!r}.")
    comparative, stem = (*entry.german_forms, "", "")[:2]
    english = entry.english_forms[0] if entry.english_forms else ""
    rank, scale = int(entry.option("rank")[0]), entry.option("scale")[0]
    stem = stem or entry.german
    return Adjective(entry.key, entry.english, english, entry.german, stem, comparative, entry.flags, rank, scale)


def _clue(entry: Entry, nouns: dict[str, Noun]) -> Clue:
    if entry.tags[0] not in nouns:
        raise entry.fault(f"there is no noun {entry.tags[0]!r}.")
    english, _, english_rest = entry.english.partition(" ")
    german, _, german_rest = entry.german.partition(" ")
    return Clue(
        entry.tags[0],
        (english, entry.english_forms[0]),
        (german, entry.german_forms[0]),
        english_rest,
        german_rest,
    )
