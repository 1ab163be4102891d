from pathlib import Path

import numpy as np
import pytest
import torch

from transduce.data.batch import Resegmentation, collate, pad_rows, require_sampling
from transduce.data.token_store import TokenStore, token_store_written
from transduce.errors import ConfigError
from transduce.special_tokens import OWN_SPECIAL_TOKENS
from transduce.text.bpe_tokenizer import BpeTokenizer
from transduce.text.character_tokenizer import CharacterTokenizer
from transduce.text.tokenizer_pair import TokenizerPair

EOS = OWN_SPECIAL_TOKENS.end

TEXTS = [("the cat sat on the mat", "die katze sass"), ("the mat", "die matte"), ("", "katze")]


@pytest.fixture(scope="module")
def tokenizer() -> BpeTokenizer:
    return BpeTokenizer.learn([side for pair in TEXTS for side in pair] * 3, vocabulary_size=320)


@pytest.fixture
def store(tmp_path: Path, tokenizer: BpeTokenizer) -> TokenStore:
    with token_store_written(tmp_path / "store", vocabulary_size=tokenizer.vocabulary_size) as writer:
        sources, targets = ([[*tokenizer.encode(pair[side]), EOS] for pair in TEXTS] for side in range(2))
        writer.append(sources, targets, texts=TEXTS)
    return TokenStore.open(tmp_path / "store")


@pytest.fixture
def written_by_hand(tmp_path: Path) -> TokenStore:
    with token_store_written(tmp_path / "store", vocabulary_size=300) as writer:
        writer.append([[5, 6, 7, 3], [8, 3], [3]], [[9, 3], [10, 11, 3], [12, 13, 14, 15, 3]], texts=[("a", "b")] * 3)
    return TokenStore.open(tmp_path / "store")


def resegmentation(
    tokenizer: BpeTokenizer, *, dropout: float = 0.5, epoch: int = 0, max_length: int = 256
) -> Resegmentation:
    return Resegmentation(TokenizerPair.shared(tokenizer), dropout=dropout, seed=11, epoch=epoch, max_length=max_length)


def rows(tensor: torch.Tensor) -> list[list[int]]:
    return [[token for token in row if token] for row in tensor.tolist()]


def test_a_batch_holds_the_asked_sentences_in_order_padded_at_the_end(written_by_hand: TokenStore) -> None:
    batch = collate(written_by_hand, np.array([1, 0]))
    assert batch.source_BS.tolist() == [[8, 3, 0, 0], [5, 6, 7, 3]]
    assert batch.target_BT.tolist() == [[10, 11, 3], [9, 3, 0]]
    assert batch.source_BS.dtype == batch.target_BT.dtype == torch.int64
    assert batch.sentences.tolist() == [1, 0]


def test_a_batch_without_sentences_has_no_rows(written_by_hand: TokenStore) -> None:
    assert collate(written_by_hand, np.array([], dtype=np.int64)).source_BS.shape == (0, 0)


def test_rows_are_padded_to_the_longest() -> None:
    assert pad_rows([[1], [2, 3]]).tolist() == [[1, 0], [2, 3]]


def test_resegmented_text_says_the_same_in_other_pieces(store: TokenStore, tokenizer: BpeTokenizer) -> None:
    everything = np.arange(len(store))
    usual, sampled = (collate(store, everything, resegmentation=how) for how in (None, resegmentation(tokenizer)))
    assert rows(usual.source_BS) != rows(sampled.source_BS)
    assert rows(usual.target_BT) != rows(sampled.target_BT)
    for side, ids in enumerate((sampled.source_BS, sampled.target_BT)):
        assert [tokenizer.decode(row) for row in rows(ids)] == [pair[side] for pair in TEXTS]
        assert all(row[-1] == EOS for row in rows(ids))


def test_resegmentation_without_dropout_is_the_usual_segmentation(store: TokenStore, tokenizer: BpeTokenizer) -> None:
    batch = collate(store, np.arange(3), resegmentation=resegmentation(tokenizer, dropout=0.0))
    assert rows(batch.source_BS) == rows(collate(store, np.arange(3)).source_BS)


def test_pieces_depend_on_epoch_and_sentence_and_not_on_the_batch(store: TokenStore, tokenizer: BpeTokenizer) -> None:
    first = resegmentation(tokenizer)
    together = rows(collate(store, np.array([2, 0, 1]), resegmentation=first).target_BT)
    alone = rows(collate(store, np.array([0]), resegmentation=first).target_BT)
    assert together[1] == alone[0]
    epochs = [
        rows(collate(store, np.array([0]), resegmentation=resegmentation(tokenizer, epoch=epoch)).source_BS)
        for epoch in range(5)
    ]
    assert any(epoch != epochs[0] for epoch in epochs)


def test_a_sample_beyond_the_maximum_gives_way_to_the_usual_segmentation(
    store: TokenStore, tokenizer: BpeTokenizer
) -> None:
    limit = int(store.source_lengths.max())
    batch = collate(store, np.arange(3), resegmentation=resegmentation(tokenizer, dropout=0.99, max_length=limit))
    assert rows(batch.source_BS)[0] == store.source(0).tolist()
    # A sentence that was let in beyond the maximum stays whole too.
    batch = collate(store, np.arange(3), resegmentation=resegmentation(tokenizer, dropout=0.99, max_length=2))
    assert [tokenizer.decode(row) for row in rows(batch.source_BS)] == [pair[0] for pair in TEXTS]


def test_padding_may_have_any_id(written_by_hand: TokenStore) -> None:
    batch = collate(written_by_hand, np.array([0, 1]), padding=299)
    assert batch.source_BS.tolist() == [[5, 6, 7, 3], [8, 3, 299, 299]]
    assert batch.to(torch.device("cpu")).padding == 299


def test_each_side_is_segmented_by_its_own_tokenizer_and_ends_as_it_should(
    store: TokenStore, tokenizer: BpeTokenizer
) -> None:
    other = BpeTokenizer.learn(["die katze sass", "die matte"] * 3, vocabulary_size=300)
    pair = TokenizerPair(tokenizer, other, source_end=False)
    batch = collate(store, np.array([0]), resegmentation=Resegmentation(pair, 0.0, seed=1, epoch=0, max_length=99))
    assert batch.source_BS.tolist() == [tokenizer.encode(TEXTS[0][0])]
    assert batch.target_BT.tolist() == [[*other.encode(TEXTS[0][1]), EOS]]


def test_a_tokenizer_that_knows_one_way_to_cut_a_text_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"kind 'characters' cuts a text in one way only.*training\.bpe_dropout = 0"):
        require_sampling(CharacterTokenizer(["a"]))
