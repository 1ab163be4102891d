import hashlib

import numpy as np
import pytest

from transduce.data.sentence_hashes import are_known, hashes_after_folding, sentence_hashes


def test_a_hash_is_of_the_normalised_sentence_and_the_same_everywhere() -> None:
    expected = int.from_bytes(hashlib.blake2b(b"Guten Tag.", digest_size=8).digest(), "little")
    assert sentence_hashes(["Guten Tag.", " Guten\u00a0 Tag.\n"]).tolist() == [expected, expected]


def test_known_sentences_are_found_and_no_others() -> None:
    known = np.sort(sentence_hashes(f"sentence {n}" for n in range(0, 2000, 2)))
    asked = sentence_hashes(f"sentence {n}" for n in range(2000))
    assert are_known(asked, known).tolist() == [n % 2 == 0 for n in range(2000)]
    assert not are_known(asked, known[:0]).any()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Guten Tag!", "guten tag"),
        ("It rains .", "It rains."),
        ("don ' t", "don’t"),
        ("STRASSE", "straße"),
        ("こんにちは。", "こんにちは"),
        ("1,000 euros", "1000 euros"),
    ],
)
def test_case_spaces_and_punctuation_are_folded(one: str, other: str) -> None:
    assert hashes_after_folding([one]) == hashes_after_folding([other])


@pytest.mark.parametrize(("one", "other"), [("कि", "का"), ("résumé", "resume"), ("3 + 4", "3 × 4"), ("…", "!")])
def test_other_differences_are_not_folded(one: str, other: str) -> None:
    assert hashes_after_folding([one]) != hashes_after_folding([other])
