"""Checks of finished translations."""

import pytest

from transduce.translator.checks import doubts_about


@pytest.mark.parametrize(
    ("source", "translation", "doubts"),
    [
        ("Precise sub-results", "Präsere Nebenurururururur.", ("stutter",)),
        ("He is very old.", "Er ist sehr sehr sehr alt.", ("stutter",)),
        ("No no no no!", "Nein nein nein nein!", ()),
        ("Monday", "Montag ist Montag", ("stutter",)),
        ("Monday to Monday", "Von Montag bis Montag", ()),
        ("Keep them.", "Behalten Sie sie.", ()),
        ("Bye bye", "Tschüss tschüss", ()),
        ("我喜欢苹果，你也喜欢苹果吗？", "I like apples, do you like apples, too?", ()),
        ("Yes", "Ja", ()),
        ("Yes", "Ja, das ist so, und ich sage es dir noch einmal.", ("length",)),
        ("The dog barks.", "Der Hund bellt.", ()),
        ("in", ".", ("length",)),
        ("banana", "Banane", ()),
    ],
)
def test_stutter_and_odd_lengths_are_found(source: str, translation: str, doubts: tuple[str, ...]) -> None:
    assert doubts_about(source, translation, lost_numbers=False) == doubts
    assert doubts_about(source, translation, lost_numbers=True) == (*doubts, "numbers")
