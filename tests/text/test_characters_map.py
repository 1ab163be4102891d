"""Damaged maps of characters: a trie with a loop and replacements without end cost no quadratic time or memory."""

import struct

import pytest

from transduce.errors import ModelError
from transduce.text.characters_map import CharactersMap

LABEL = ord("a")


def looping(replacement: bytes) -> bytes:
    """Return a map whose key is a, aa, aaa and so on: the unit of `a` is its own parent."""
    units = [0] * 256
    units[0] = 0  # the root, whose children begin at 0
    units[LABEL] = LABEL | 1 << 8 | LABEL << 10  # its children begin at LABEL XOR LABEL = 0; a key ends here
    trie = struct.pack("<256I", *units)
    return len(trie).to_bytes(4, "little") + trie + replacement


def test_a_trie_with_a_loop_is_damaged_and_takes_no_quadratic_time() -> None:
    replace = CharactersMap(looping(b"b\0"), name="x.spm")
    assert replace("aaa ca") == "b cb"
    with pytest.raises(ModelError, match=r"x\.spm is damaged"):
        replace("ca" * 10 + "a" * 1_000_000)  # without the limit this takes days


def test_a_replacement_without_an_end_is_damaged() -> None:
    with pytest.raises(ModelError, match=r"x\.spm is damaged"):
        CharactersMap(looping(b"b" * 1_000_000 + b"\0"), name="x.spm")("a")
