"""English sentences from trees: articles, agreement, tenses, do-support, word order and relative pronouns."""

from demo_grammar.german_verbs import Modal
from demo_grammar.marks import weave
from demo_grammar.tree import (
    A_BARE,
    A,
    Clause,
    ClueClause,
    Name,
    Nominal,
    NounPhrase,
    Predicate,
    PrepositionalPhrase,
    Pronoun,
    RelativePronoun,
    Sentence,
    Slot,
)

_BE = {"present": ("am", "is", "are"), "past": ("was", "was", "were")}
_HAVE = {"present": ("have", "has", "have"), "past": ("had", "had", "had")}
_DO = {"present": ("do", "does", "do"), "past": ("did", "did", "did")}
_SOUNDS_LIKE_A_CONSONANT = ("uni", "use", "euro", "one")
_SILENT_H = ("hour", "honest")


def sentence(tree: Sentence) -> str:
    """Return the English sentence."""
    if isinstance(tree.main, ClueClause):
        text = clue_clause(tree.main)
    elif tree.kind == "command":
        text = _command(tree.main)
    elif tree.kind == "existence":
        text = _existence(tree.main)
    else:
        text = clause(tree.main, front=tree.front, is_question=tree.kind == "question")
    if tree.subordinate is not None and tree.conjunction is not None:
        joined = f"{tree.conjunction.english} {_any_clause(tree.subordinate)}"
        text = f"{joined}, {text}" if tree.subordinate_is_first else f"{text} {joined}"
    if tree.joined is not None:
        second = _any_clause(tree.joined, drops_subject=not tree.joined_keeps_subject)
        text = f"{text}{',' * (tree.joint == 'but')} {tree.joint} {second}"
    if tree.addressee is not None:
        name = nominal(tree.addressee)
        text = f"{name}, {text}" if tree.addressee_is_first else f"{text}, {name}"
    return text[0].upper() + text[1:] + {"question": "?", "command": "!"}.get(tree.kind, ".")


def _any_clause(tree: Clause | ClueClause, *, drops_subject: bool = False) -> str:
    return clue_clause(tree) if isinstance(tree, ClueClause) else clause(tree, drops_subject=drops_subject)


def clue_clause(tree: ClueClause) -> str:
    """Return a clause with a predicate from the clues of the lexicon."""
    verb = weave(tree.clue.english[tree.is_past], tree.mark)
    return f"{nominal(tree.subject)} {verb} {tree.clue.english_rest}"


def clause(tree: Clause, *, front: Slot = "subject", is_question: bool = False, drops_subject: bool = False) -> str:
    """Return a clause that begins with the slot `front`; a question inverts unless it asks for its subject."""
    inverts = is_question and front != "subject"
    auxiliary, main = verb_group(tree, needs_support=inverts or tree.negation in ("not", "not yet"))
    negation = "never" if tree.negation == "never" else "not" if tree.negation else ""
    if auxiliary == "can" and negation == "not" and not inverts:
        auxiliary, negation = "cannot", ""
    words = [] if front in ("subject", "") else [slot(tree, front)]
    subject = "" if drops_subject else nominal(tree.subject)
    finite = weave(auxiliary, tree.mark)
    words += [finite, subject] if inverts else [subject, finite]
    words.append(negation)
    if tree.frequency is not None:
        words.append(tree.frequency.english)
    words += [weave(main, tree.mark), _after_verb(tree, front=front)]
    return " ".join(word for word in words if word)


def _command(tree: Clause) -> str:
    refusal = f"{weave('do', tree.mark)} not " if tree.negation else ""
    verb = weave(_with_particle(tree, tree.verb.english.base), tree.mark)
    return f"please {refusal}{verb} {_after_verb(tree, front='')}".rstrip()


def _existence(tree: Clause) -> str:
    """Return a clause with "there is", for German es gibt and verbs of posture: there is a book on the table."""
    subject = tree.accusative if tree.accusative is not None else tree.subject
    form = _BE["past" if tree.tense == "past" else "present"][agreement_of(subject)]
    return f"there {weave(form, tree.mark)} {nominal(subject)} {slot(tree, 'place')}"


def _after_verb(tree: Clause, *, front: Slot) -> str:
    words: list[str] = []
    dative = "" if tree.dative is None or front == "dative" else nominal(tree.dative, is_object=True)
    accusative = "" if tree.accusative is None or front == "accusative" else nominal(tree.accusative, is_object=True)
    if "to" in tree.verb.flags and dative:
        words += [accusative, "to", dative]
    else:
        words += [dative, accusative]
    if tree.oblique is not None and front != "oblique":
        words.append(prepositional_phrase(tree.oblique))
    if tree.predicate is not None:
        words.append(predicate(tree.predicate))
    if tree.manner is not None:
        words.append(tree.manner.english)
    if tree.place is not None and front != "place":
        words.append(slot(tree, "place"))
    if tree.time is not None and front != "time":
        words.append(tree.time.english)
    if tree.negation == "not yet":
        words.append("yet")
    if tree.content is not None:
        inner = tree.content.clause
        if tree.content.conjunction in ("that", "whether"):
            words += [tree.content.conjunction, _any_clause(inner)]
        elif isinstance(inner, Clause):
            infinitive = f"to {_with_particle(inner, inner.verb.english.base)}"
            words += [weave(infinitive, inner.mark), _after_verb(inner, front="")]
    return " ".join(word for word in words if word)


def slot(tree: Clause, name: Slot) -> str:
    """Return the words of a slot other than the subject."""
    if name == "time":
        return tree.time.english if tree.time is not None else ""
    if name in ("oblique", "place"):
        filled = tree.oblique if name == "oblique" else tree.place
        return (
            prepositional_phrase(filled)
            if isinstance(filled, PrepositionalPhrase)
            else filled.english
            if filled is not None
            else ""
        )
    filled_by = tree.accusative if name == "accusative" else tree.dative
    return nominal(filled_by, is_object=True) if filled_by is not None else ""


def verb_group(tree: Clause, *, needs_support: bool) -> tuple[str, str]:
    """Return the first auxiliary, or "", and the other verbs: ("", "eats"), ("does", "eat"), ("has", "eaten")."""
    agreement = agreement_of(tree.subject)
    verb, tense = tree.verb.english, "past" if tree.tense in ("past", "pluperfect") else "present"
    if tree.modal is not None:
        auxiliary, main = _modal_group(tree.modal, verb.base, tense, agreement, needs_support=needs_support)
    elif tree.tense == "future":
        auxiliary, main = "will", f"be {verb.participle}" if tree.is_passive else verb.base
    elif tree.tense in ("perfect", "pluperfect"):
        auxiliary = _HAVE[tense][agreement]
        main = f"been {verb.participle}" if tree.is_passive else verb.participle
    elif tree.is_passive or tree.tense == "progressive":
        auxiliary, main = _BE[tense][agreement], verb.participle if tree.is_passive else verb.progressive
    elif verb.base == "be":
        auxiliary, main = _BE[tense][agreement], ""
    elif needs_support:
        auxiliary, main = _DO[tense][agreement], verb.base
    elif tense == "past":
        auxiliary, main = "", verb.past
    else:
        auxiliary, main = "", verb.third if agreement == 1 else verb.base
    return auxiliary, _with_particle(tree, main)


def _with_particle(tree: Clause, main: str) -> str:
    return f"{main} {tree.verb.english.particle}".strip()


def _modal_group(modal: Modal, base: str, tense: str, agreement: int, *, needs_support: bool) -> tuple[str, str]:
    if modal.english == "would":
        return "would", f"like to {base}"
    if not modal.inflects:
        return modal.english_past if tense == "past" else modal.english, base
    if needs_support:
        return _DO[tense][agreement], f"{modal.english} to {base}"
    if tense == "past":
        return "", f"{modal.english_past} to {base}"
    third = "has" if modal.english == "have" else modal.english + "s"
    return "", f"{third if agreement == 1 else modal.english} to {base}"


def agreement_of(subject: Nominal) -> int:
    """Return 0 for I, 1 for the third person singular, 2 for all others."""
    if isinstance(subject, Pronoun):
        return subject.agreement
    if isinstance(subject, RelativePronoun):
        return 2 if subject.agreement == "p" else 1
    return 2 if subject.is_plural else 1


def nominal(tree: Nominal, *, is_object: bool = False) -> str:
    """Return a noun phrase, a pronoun or a name."""
    if isinstance(tree, NounPhrase):
        return noun_phrase(tree)
    if isinstance(tree, Name):
        return weave(tree.english, tree.mark)
    if isinstance(tree, Pronoun):
        return weave(tree.english_object if is_object else tree.english, tree.mark)
    if tree.is_person:
        return weave("whom" if is_object else "who", tree.mark)
    return weave("that", tree.mark)


def noun_phrase(tree: NounPhrase) -> str:
    """Return determiner, adjectives, noun, the owner and the relative clause."""
    words = [adjective.english for adjective in tree.adjectives]
    words.append(weave(tree.noun.english_plural if tree.is_plural else tree.noun.english, tree.mark))
    owner = tree.owner
    if owner is not None and "person" in owner.noun.classes:
        words.insert(
            0, noun_phrase(owner) + ("'" if owner.is_plural and owner.noun.english_plural[-1] == "s" else "'s")
        )
    elif tree.determiner in (A, A_BARE):
        words.insert(0, article(words[0]))
    elif determiner := tree.determiner.english_plural if tree.is_plural else tree.determiner.english:
        words.insert(0, determiner)
    if owner is not None and "person" not in owner.noun.classes:
        words += ["of", noun_phrase(owner)]
    if isinstance(tree.relative, ClueClause):
        words.append(clue_clause(tree.relative))
    elif tree.relative is not None:
        words.append(clause(tree.relative, front=relative_slot(tree.relative)))
    return " ".join(words)


def relative_slot(tree: Clause) -> Slot:
    """Return the slot of the relative pronoun, or of the noun after "whose", in a relative clause."""
    if _is_relative(tree.subject):
        return "subject"
    if _is_relative(tree.accusative):
        return "accusative"
    if _is_relative(tree.dative):
        return "dative"
    if tree.oblique is not None and _is_relative(tree.oblique.nominal):
        return "oblique"
    return "place"


def _is_relative(tree: Nominal | None) -> bool:
    if isinstance(tree, NounPhrase):
        return tree.determiner.english == "whose"
    return isinstance(tree, RelativePronoun)


def article(following: str) -> str:
    """Return "a" or "an", as the following word needs it."""
    sound = following.lower()
    starts_with_vowel = sound[0] in "aeiou" and not sound.startswith(_SOUNDS_LIKE_A_CONSONANT)
    return "an" if starts_with_vowel or sound.startswith(_SILENT_H) else "a"


def prepositional_phrase(tree: PrepositionalPhrase) -> str:
    """Return a preposition and its noun phrase; "that" becomes "which" after a preposition."""
    text = nominal(tree.nominal, is_object=True)
    if isinstance(tree.nominal, RelativePronoun) and not tree.nominal.is_person:
        text = weave("which", tree.nominal.mark)
    return f"{tree.preposition.english} {text}".lstrip()


def predicate(tree: Predicate) -> str:
    """Return the words after "to be"."""
    if tree.phrase is not None:
        return tree.phrase.english
    if tree.nominal is not None:
        return noun_phrase(tree.nominal)
    assert tree.adjective is not None, "a predicate has an adjective, a noun phrase or a phrase"
    if tree.than is None:
        return tree.adjective.english
    than = nominal(tree.than)
    if tree.degree == "equal":
        return f"as {tree.adjective.english} as {than}"
    return f"{tree.adjective.english_comparative} than {than}"
