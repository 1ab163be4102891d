"""German noun phrases: articles, adjective endings and nouns that agree in gender, number and case.

The ending of an adjective depends on the word before it: weak after der (der alte Mann), mixed after ein
(ein alter Mann), strong without an article (alter Wein).
"""

from typing import Literal

from demo_grammar.marks import weave
from demo_grammar.tree import Case, Determiner, NounPhrase, PrepositionalPhrase

Agreement = Literal["m", "f", "n", "p"]

# Each row: masculine, feminine, neuter, plural.
_ROWS: dict[str, dict[Case, str]] = {
    "definite": {
        "nominative": "der die das die",
        "accusative": "den die das die",
        "dative": "dem der dem den",
        "genitive": "des der des der",
    },
    "der": {
        "nominative": "er e es e",
        "accusative": "en e es e",
        "dative": "em er em en",
        "genitive": "es er es er",
    },
    "ein": {
        "nominative": "- e - e",
        "accusative": "en e - e",
        "dative": "em er em en",
        "genitive": "es er es er",
    },
    "weak": {
        "nominative": "e e e en",
        "accusative": "en e e en",
        "dative": "en en en en",
        "genitive": "en en en en",
    },
    "mixed": {
        "nominative": "er e es en",
        "accusative": "en e es en",
        "dative": "en en en en",
        "genitive": "en en en en",
    },
    "strong": {
        "nominative": "er e es e",
        "accusative": "en e es e",
        "dative": "em er em en",
        "genitive": "en er en er",
    },
}
_AGREEMENTS: tuple[Agreement, ...] = ("m", "f", "n", "p")
ENDINGS: dict[tuple[str, Case, Agreement], str] = {
    (pattern, case, agreement): form.strip("-")
    for pattern, rows in _ROWS.items()
    for case, row in rows.items()
    for agreement, form in zip(_AGREEMENTS, row.split(), strict=True)
}
_CONTRACTIONS = {
    "in dem": "im",
    "in das": "ins",
    "an dem": "am",
    "an das": "ans",
    "zu dem": "zum",
    "zu der": "zur",
    "von dem": "vom",
    "bei dem": "beim",
}


def determiner(tree: Determiner, case: Case, agreement: Agreement) -> str:
    """Return the form of a determiner."""
    if tree.pattern == "definite":
        return ENDINGS["definite", case, agreement]
    if tree.pattern == "":
        return tree.german
    ending = ENDINGS["der" if tree.pattern == "viel" else tree.pattern, case, agreement]
    stem = "eur" if tree.german == "euer" and ending else tree.german
    return stem + ending


def noun_form(tree: NounPhrase, case: Case) -> str:
    """Return the form of the noun alone: genitive singular, -n of the dative plural, -n of weak nouns."""
    noun = tree.noun
    if tree.is_plural:
        takes_n = case == "dative" and noun.german_plural[-1] not in "ns"
        return noun.german_plural + "n" if takes_n else noun.german_plural
    if case == "nominative":
        return noun.german
    return noun.genitive if case == "genitive" else noun.weak


def noun_phrase(tree: NounPhrase, case: Case) -> str:
    """Return determiner, adjectives, noun and the owner in the genitive; `german` adds relative clauses."""
    agreement = tree.agreement
    words = []
    if article := determiner(tree.determiner, case, agreement):
        words.append(article)
    if tree.adjectives:
        ending = ENDINGS[tree.determiner.declension, case, agreement]
        words += [adjective.stem + ending for adjective in tree.adjectives]
    words.append(weave(noun_form(tree, case), tree.mark))
    if tree.owner is not None:
        words.append(noun_phrase(tree.owner, "genitive"))
    return " ".join(words)


def after_preposition(tree: PrepositionalPhrase, phrase: str) -> str:
    """Return the preposition and its phrase, contracted ("im") unless the noun has a relative clause."""
    preposition = tree.preposition.german
    inner = tree.nominal
    if isinstance(inner, NounPhrase) and inner.determiner.pattern == "definite" and inner.relative is None:
        article, _, rest = phrase.partition(" ")
        if short := _CONTRACTIONS.get(f"{preposition} {article}"):
            return f"{short} {rest}"
    return f"{preposition} {phrase}"
