"""What is learned of which tokens become which, against IBM model 1 written out with dictionaries."""

import random
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from transduce.data import shortlist as room
from transduce.data.shortlist import Shortlist, learn_shortlist
from transduce.data.token_store import TokenStore, token_store_written
from transduce.special_tokens import SpecialTokens

EOS = 3
Pairs = list[tuple[list[int], list[int]]]
# Koehn's corpus: the house, das Haus; the book, das Buch; a book, ein Buch.
THE, HOUSE, BOOK, A, DAS, HAUS, BUCH, EIN = range(4, 12)
HOUSE_AND_BOOK: Pairs = [([THE, HOUSE], [DAS, HAUS]), ([THE, BOOK], [DAS, BUCH]), ([A, BOOK], [EIN, BUCH])]


def store_of(folder: Path, pairs: Pairs, *, vocabulary_size: int = 12) -> TokenStore:
    with token_store_written(folder, vocabulary_size=vocabulary_size) as writer:
        sources, targets = ([[*side, EOS] for side in sides] for sides in zip(*pairs, strict=True))
        writer.append(sources, targets, texts=[("", "")] * len(pairs))
    return TokenStore.open(folder)


def candidates(shortlist: Shortlist, source: int) -> list[int]:
    return [token for token in shortlist.candidates_VK[source].tolist() if token]


def probabilities_by_hand(pairs: Pairs, *, rounds: int) -> dict[int, dict[int, float]]:
    """Return t(target | source) as the textbook has it, with the empty word as source None."""
    t: dict[int | None, dict[int, float]] = defaultdict(lambda: defaultdict(lambda: 1.0))
    for _ in range(rounds):
        counts: dict[int | None, dict[int, float]] = defaultdict(lambda: defaultdict(float))
        for source, target in pairs:
            for f in target:
                total = sum(t[e][f] for e in [None, *source])
                for e in [None, *source]:
                    counts[e][f] += t[e][f] / total
        t = defaultdict(lambda: defaultdict(float))
        for e, row in counts.items():
            t[e] = defaultdict(float, {f: count / sum(row.values()) for f, count in row.items()})
    return {e: dict(row) for e, row in t.items() if e is not None}


def test_what_always_comes_together_is_told_from_what_comes_with_everything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "_most_common", lambda *_, **__: np.zeros(0, dtype=np.int64))
    learned = learn_shortlist(store_of(tmp_path / "s", HOUSE_AND_BOOK), size=1)
    assert [candidates(learned, token) for token in (THE, HOUSE, BOOK, A)] == [[DAS], [HAUS], [BUCH], [EIN]]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("at_once", [3, 2_000])
def test_candidates_are_ibm_model_1s(seed: int, at_once: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "_PAIRS_AT_ONCE", at_once)
    draw = random.Random(seed)
    words = range(4, 12)
    pairs = [(draw.choices(words, k=draw.randint(1, 6)), draw.choices(words, k=draw.randint(0, 6))) for _ in range(25)]
    learned = learn_shortlist(store_of(tmp_path / "s", pairs), size=2)
    by_hand = probabilities_by_hand(pairs, rounds=room.ROUNDS)
    common = set(learned.common_C.tolist())
    for source, row in by_hand.items():
        rest = {target: p for target, p in row.items() if target not in common and p >= room.SHARE}
        found = candidates(learned, source)
        assert len(found) == min(2, len(rest))
        least = min((rest[target] for target in found), default=1.0)
        assert all(p <= least + 1e-12 for target, p in rest.items() if target not in found)


def test_common_tokens_are_the_most_frequent_targets_and_nobodys_candidates(tmp_path: Path) -> None:
    learned = learn_shortlist(store_of(tmp_path / "s", HOUSE_AND_BOOK), size=2)
    assert learned.common_C.tolist() == [DAS, BUCH]
    assert not {DAS, BUCH} & set(learned.candidates_VK.ravel().tolist())


def test_a_list_ascends_and_holds_what_it_must(tmp_path: Path) -> None:
    learned = learn_shortlist(store_of(tmp_path / "s", HOUSE_AND_BOOK), size=1)
    found = learned.tokens([A, A, EOS], also=[HOUSE])
    assert found == sorted({0, 1, 2, EOS, *learned.common_C.tolist(), A, EIN, HOUSE})


def test_of_what_was_seen_often_no_more_is_read_and_of_the_rest_everything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "SEEN_ENOUGH", 5)
    often, seldom = ([THE], [DAS]), ([BOOK], [BUCH])
    pairs = [seldom, *[often] * 50, seldom, ([THE, BOOK], [DAS, BUCH]), ([], [DAS])]
    corpus = room._AlignmentPairs(store_of(tmp_path / "s", pairs), empty_word=0, source_end=True)
    read = list(corpus.informative_pairs())
    assert read == [0, 1, 2, 3, 4, 5, 51, 52]


def test_an_empty_corpus_teaches_nothing(tmp_path: Path) -> None:
    learned = learn_shortlist(store_of(tmp_path / "s", [([], []), ([], [DAS])]), size=3)
    assert learned.tokens([THE, EOS]) == [0, 1, 2, EOS, THE]


def test_special_tokens_may_have_any_ids(tmp_path: Path) -> None:
    special = SpecialTokens(padding=11, unknown=1, start=11, end=0)
    with token_store_written(tmp_path / "s", vocabulary_size=12) as writer:
        writer.append([[4, 2, 0], [4, 3, 0]], [[5, 6, 0], [5, 7, 0]], texts=[("", "")] * 2)
    learned = learn_shortlist(TokenStore.open(tmp_path / "s"), size=1, special=special)
    assert learned.common_C.tolist() == [5]
    assert [learned.candidates_VK[source].tolist() for source in (2, 3, 9)] == [[6], [7], [11]]
    assert learned.tokens([2, 0]) == [0, 1, 11, 2, 5, 6], "special tokens come first"


def test_separate_vocabularies_and_sources_without_an_end(tmp_path: Path) -> None:
    with token_store_written(tmp_path / "s", vocabulary_size=9, source_vocabulary_size=30) as writer:
        writer.append([[20, 28], [20, 29]], [[5, 6, EOS], [5, 7, EOS]], texts=[("", "")] * 2)
    store = TokenStore.open(tmp_path / "s")
    learned = learn_shortlist(store, size=1, has_one_vocabulary=False, source_end=False)
    assert learned.candidates_VK.shape == (30, 1)
    assert [learned.candidates_VK[source].tolist() for source in (28, 29)] == [[6], [7]]
    assert learned.tokens([29]) == [0, 1, 2, EOS, 5, 7], "the source's own ids mean nothing in the target"
