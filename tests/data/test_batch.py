from pathlib import Path

import numpy as np
import pytest
import torch

from transduce.data.batch import collate, pad_rows
from transduce.data.token_store import TokenStore, token_store_written


@pytest.fixture
def store(tmp_path: Path) -> TokenStore:
    with token_store_written(tmp_path / "store", vocabulary_size=300) as writer:
        writer.append(
            [[5, 6, 7, 3], [8, 3], [3]],
            [[9, 3], [10, 11, 3], [12, 13, 14, 15, 3]],
            texts=[("a b c", "d"), ("e", "f g"), ("", "h i j k")],
        )
    return TokenStore.open(tmp_path / "store")


def test_a_batch_holds_the_asked_sentences_in_order_padded_at_the_end(store: TokenStore) -> None:
    batch = collate(store, np.array([1, 0]))
    assert batch.source_BS.tolist() == [[8, 3, 0, 0], [5, 6, 7, 3]]
    assert batch.target_BT.tolist() == [[10, 11, 3], [9, 3, 0]]
    assert batch.source_BS.dtype == batch.target_BT.dtype == torch.int64
    assert batch.sentences.tolist() == [1, 0]


def test_a_batch_counts_its_tokens_without_padding(store: TokenStore) -> None:
    batch = collate(store, np.array([0, 1, 2]))
    assert (batch.source_tokens, batch.target_tokens) == (7, 10)


def test_a_batch_without_sentences_has_no_rows(store: TokenStore) -> None:
    assert collate(store, np.array([], dtype=np.int64)).source_BS.shape == (0, 0)


def test_rows_are_padded_to_the_longest() -> None:
    assert pad_rows([[1], [2, 3]]).tolist() == [[1, 0], [2, 3]]
