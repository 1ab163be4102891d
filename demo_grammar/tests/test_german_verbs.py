"""Conjugation, compared with forms from a textbook."""

import pytest

from demo_grammar.german_verbs import HABEN, SEIN, WERDEN, GermanVerb
from demo_grammar.lexicon import lexicon


@pytest.mark.parametrize(
    ("key", "present"),
    [
        ("eat", "esse isst isst essen esst essen"),
        ("read", "lese liest liest lesen lest lesen"),
        ("work", "arbeite arbeitest arbeitet arbeiten arbeitet arbeiten"),
        ("open", "mache machst macht machen macht machen"),
        ("invite", "lade lädst lädt laden ladet laden"),
        ("find", "finde findest findet finden findet finden"),
        ("draw", "zeichne zeichnest zeichnet zeichnen zeichnet zeichnen"),
        ("learn", "lerne lernst lernt lernen lernt lernen"),
        ("live", "wohne wohnst wohnt wohnen wohnt wohnen"),
        ("collect.stamp", "sammle sammelst sammelt sammeln sammelt sammeln"),
        ("feed", "füttere fütterst füttert füttern füttert füttern"),
        ("know.fact", "weiß weißt weiß wissen wisst wissen"),
        ("like", "mag magst mag mögen mögt mögen"),
        ("dance", "tanze tanzt tanzt tanzen tanzt tanzen"),
        ("stop", "halte hältst hält halten haltet halten"),
        ("be", "bin bist ist sind seid sind"),
    ],
)
def test_present(key: str, present: str) -> None:
    assert lexicon().verbs[key].german.present == tuple(present.split())


@pytest.mark.parametrize(
    ("key", "past"),
    [
        ("buy", "kaufte kauftest kaufte kauften kauftet kauften"),
        ("eat", "aß aßest aß aßen aßet aßen"),
        ("go", "ging gingst ging gingen gingt gingen"),
        ("be", "war warst war waren wart waren"),
        ("have", "hatte hattest hatte hatten hattet hatten"),
    ],
)
def test_preterite(key: str, past: str) -> None:
    assert lexicon().verbs[key].german.past == tuple(past.split())


COMMANDS = {
    "eat": "iss", "read": "lies", "give": "gib", "help": "hilf", "open": "mach", "cut": "schneide", "draw": "zeichne",
    "feed": "füttere", "wait": "warte", "go": "geh", "wash": "wasch", "bring": "bring", "answer": "antworte",
    "drink": "trink", "speak with": "sprich", "put.flat": "leg",
    "stay": "bleib", "get up": "steh", "bake": "back", "visit": "besuch", "collect.guest": "hol",
}  # fmt: skip


def test_commands_to_du() -> None:
    for key, form in COMMANDS.items():
        assert lexicon().verbs[key].german.imperative(1) == form


def test_commands_to_ihr_are_its_present() -> None:
    assert lexicon().verbs["eat"].german.imperative(4) == "esst"


def test_auxiliaries() -> None:
    assert [HABEN.present[2], SEIN.present[0], WERDEN.past[5]] == ["hat", "bin", "wurden"]


def test_infinitives_with_zu() -> None:
    opened, bought = (lexicon().verbs[key].german.infinitive_with_zu for key in ("open", "buy"))
    assert (opened, bought) == ("aufzumachen", "zu kaufen")


def test_a_verb_of_motion_goes_with_sein() -> None:
    with_sein = {verb.german.full_infinitive for verb in lexicon().verbs.values() if verb.german.auxiliary == "sein"}
    assert {"gehen", "laufen", "reisen", "ankommen", "aufstehen", "bleiben", "folgen", "sein", "werden"} <= with_sein
    assert with_sein.isdisjoint({"essen", "kaufen", "stehen", "sitzen", "liegen", "schlafen", "tanzen"})


def test_regular_verbs_need_only_what_the_dictionary_lists() -> None:
    verb = GermanVerb.conjugated("sagen", third="sagt", preterite="sagte", participle="gesagt", auxiliary="haben")
    assert verb.present == ("sage", "sagst", "sagt", "sagen", "sagt", "sagen")
