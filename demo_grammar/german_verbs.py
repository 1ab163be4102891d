"""German verbs: six persons, two simple tenses, participle, auxiliary, separable prefix.

Persons are numbered as grammars list them: ich, du, er, wir, ihr, sie. The polite Sie takes the forms of sie.
"""

from typing import NamedTuple

Forms = tuple[str, str, str, str, str, str]

_IRREGULAR_PRESENT: dict[str, Forms] = {
    "sein": ("bin", "bist", "ist", "sind", "seid", "sind"),
    "haben": ("habe", "hast", "hat", "haben", "habt", "haben"),
    "werden": ("werde", "wirst", "wird", "werden", "werdet", "werden"),
    "wissen": ("weiß", "weißt", "weiß", "wissen", "wisst", "wissen"),
    "mögen": ("mag", "magst", "mag", "mögen", "mögt", "mögen"),
    "halten": ("halte", "hältst", "hält", "halten", "haltet", "halten"),
}


class GermanVerb(NamedTuple):
    """The forms of a verb without its separable prefix; only the participle includes the prefix (aufgemacht)."""

    infinitive: str
    present: Forms
    past: Forms
    participle: str
    auxiliary: str
    prefix: str = ""
    reflexive: str = ""  # the case of its reflexive pronoun, or ""

    @classmethod
    def conjugated(
        cls, infinitive: str, *, third: str, preterite: str, participle: str, auxiliary: str
    ) -> "GermanVerb":
        """Return all forms, derived from the forms that a dictionary lists."""
        present = _IRREGULAR_PRESENT.get(infinitive) or _present(infinitive, third)
        return cls(infinitive, present, _past(preterite), participle, auxiliary)

    @property
    def full_infinitive(self) -> str:
        """The infinitive with its prefix: aufmachen."""
        return self.prefix + self.infinitive

    @property
    def infinitive_with_zu(self) -> str:
        """The infinitive with zu, which stands between prefix and stem: aufzumachen, zu kaufen."""
        return f"{self.prefix}zu{self.infinitive}" if self.prefix else f"zu {self.infinitive}"

    def imperative(self, person: int) -> str:
        """Return the imperative for a person: du is 1, ihr is 4, Sie is 5 and takes the present."""
        if person != 1:
            return self.present[person]
        stem, root = stem_of(self.infinitive), self.present[2].removesuffix("t")
        if root.count("i") > stem.count("i"):  # helfen, er hilft: hilf!
            return root
        return stem + "e" if needs_e(stem) or self.infinitive.endswith("ern") else stem


def stem_of(infinitive: str) -> str:
    """Return the infinitive without its ending: kauf-en, sammel-n."""
    return infinitive.removesuffix("en") if infinitive.endswith("en") else infinitive.removesuffix("n")


def needs_e(stem: str) -> bool:
    """Return whether the stem takes an e before the ending -t: arbeit-e-t, öffn-e-t, but wohn-t, lern-t."""
    if stem[-1] in "dt":
        return True
    return stem[-1] in "mn" and (stem.endswith("chn") or stem[-2] not in "aeiouäöühlrmn")


def _present(infinitive: str, third: str) -> Forms:
    stem = stem_of(infinitive)
    first = stem.removesuffix("el") + "le" if infinitive.endswith("eln") else stem + "e"
    root = third.removesuffix("t")
    second = root + ("t" if root.endswith(("s", "ß", "z", "x")) else "st")
    you_all = stem + ("et" if needs_e(stem) else "t")
    return first, second, third, infinitive, you_all, infinitive


def _past(preterite: str) -> Forms:
    if preterite.endswith("e"):
        return preterite, preterite + "st", preterite, preterite + "n", preterite + "t", preterite + "n"
    eased = "e" if preterite.endswith(("d", "t", "s", "ß")) else ""
    plural = preterite + "en"
    return preterite, f"{preterite}{eased}st", preterite, plural, f"{preterite}{eased}t", plural


HABEN = GermanVerb.conjugated("haben", third="hat", preterite="hatte", participle="gehabt", auxiliary="haben")
SEIN = GermanVerb.conjugated("sein", third="ist", preterite="war", participle="gewesen", auxiliary="sein")
WERDEN = GermanVerb.conjugated("werden", third="wird", preterite="wurde", participle="geworden", auxiliary="sein")


class Modal(NamedTuple):
    """A modal verb in both languages; `inflects` is true if English uses a full verb with "to" (wants to)."""

    english: str
    english_past: str
    inflects: bool
    present: Forms
    past: Forms


def _modal(english: str, english_past: str, present: str, past: str, *, inflects: bool = False) -> Modal:
    first, du, plural, ihr = present.split()
    return Modal(english, english_past, inflects, (first, du, first, plural, ihr, plural), _past(past))


CAN = _modal("can", "could", "kann kannst können könnt", "konnte")
MAY = _modal("may", "", "darf darfst dürfen dürft", "durfte")
MUST = _modal("must", "", "muss musst müssen müsst", "musste")
MUST_NOT = _modal("must", "", "darf darfst dürfen dürft", "durfte")
SHOULD = _modal("should", "", "soll sollst sollen sollt", "sollte")
HAVE_TO = _modal("have", "had", "muss musst müssen müsst", "musste", inflects=True)
WANT_TO = _modal("want", "wanted", "will willst wollen wollt", "wollte", inflects=True)
WOULD_LIKE = _modal("would", "", "möchte möchtest möchten möchtet", "wollte")
LIKE_TO = _modal("like", "liked", "mag magst mögen mögt", "mochte", inflects=True)
