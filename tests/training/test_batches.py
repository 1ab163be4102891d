import itertools
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from transduce.data.token_store import TokenStore, token_store_written
from transduce.rivals.neural_gpu_config import NeuralGpuConfig
from transduce.special_tokens import OWN_SPECIAL_TOKENS
from transduce.text.bpe_tokenizer import BpeTokenizer
from transduce.text.tokenizer_pair import TokenizerPair
from transduce.torch_networks import new_network
from transduce.training.batches import TrainingBatches, pairs_that_fit, sample_rows
from transduce.training.config import TrainingConfig

EOS = OWN_SPECIAL_TOKENS.end

MakeConfig = Callable[..., TrainingConfig]
TEXTS = [(f"the quick brown fox number {n} jumps", f"der flinke braune Fuchs Nummer {n} springt") for n in range(30)]


@pytest.fixture(scope="module")
def tokenizer() -> BpeTokenizer:
    return BpeTokenizer.learn([side for pair in TEXTS for side in pair], vocabulary_size=400)


@pytest.fixture
def text_store(tmp_path: Path, tokenizer: BpeTokenizer) -> TokenStore:
    with token_store_written(tmp_path / "texts", vocabulary_size=tokenizer.vocabulary_size) as writer:
        sides = [[[*tokenizer.encode(pair[side]), EOS] for pair in TEXTS] for side in (0, 1)]
        writer.append(sides[0], sides[1], texts=TEXTS)
    return TokenStore.open(tmp_path / "texts")


def test_an_epoch_s_ranks_and_micro_batches_hold_every_sentence_once(
    store: TokenStore, make_config: MakeConfig
) -> None:
    batches = TrainingBatches(store, make_config(micro_batch_tokens=30))
    dealt = [
        int(sentence)
        for step, rank in itertools.product(batches.steps(3), range(2))
        for batch in batches.deal(step, epoch=3, rank=rank, ranks=2)
        for sentence in batch.sentences
    ]
    assert sorted(dealt) == list(range(len(store)))


@pytest.mark.parametrize("micro_batch_tokens", [None, 30])
def test_no_batch_is_larger_than_the_largest(
    store: TokenStore, make_config: MakeConfig, micro_batch_tokens: int | None
) -> None:
    batches = TrainingBatches(store, make_config(micro_batch_tokens=micro_batch_tokens))

    def size(source: torch.Tensor, target: torch.Tensor) -> int:
        return source.size(0) * max(source.size(1), target.size(1))

    largest = batches.largest(epoch=0, ranks=1)
    sizes = [
        size(batch.source_BS, batch.target_BT)
        for step in batches.steps(0)
        for batch in batches.deal(step, epoch=0, rank=0, ranks=1)
    ]
    limit = micro_batch_tokens or 64
    assert size(largest.source_BS, largest.target_BT) >= min(max(sizes), 0.8 * limit)


def test_bpe_dropout_segments_anew_in_every_epoch_and_alike_at_every_start(
    text_store: TokenStore, tokenizer: BpeTokenizer, make_config: MakeConfig
) -> None:
    def drawn(epoch: int, *, seed: int = 1) -> list[list[int]]:
        config = make_config(bpe_dropout=0.3, seed=seed)
        batch = TrainingBatches(text_store, config, tokenizers=TokenizerPair.shared(tokenizer)).batch(
            np.arange(30), epoch=epoch
        )
        return batch.source_BS.tolist() + batch.target_BT.tolist()

    assert drawn(0) == drawn(0)
    assert drawn(0) != drawn(1)
    assert drawn(0) != drawn(0, seed=2)
    for row, text in zip(drawn(5), [pair[side] for side in (0, 1) for pair in TEXTS], strict=True):
        tokens = [token for token in row if token]
        assert tokens[-1] == EOS
        assert tokenizer.decode(tokens) == text


def test_no_sample_is_longer_than_the_model_s_positions(
    text_store: TokenStore, tokenizer: BpeTokenizer, make_config: MakeConfig
) -> None:
    longest = int(max(text_store.source_lengths.max(), text_store.target_lengths.max()))
    for max_length in (longest, longest + 3):
        config = make_config(bpe_dropout=0.5)
        batches = TrainingBatches(text_store, config, tokenizers=TokenizerPair.shared(tokenizer), max_length=max_length)
        batch = batches.batch(np.arange(30), epoch=0)
        assert max(batch.source_BS.size(1), batch.target_BT.size(1)) <= max_length


def test_without_bpe_dropout_batches_are_the_store_s_own(
    text_store: TokenStore, tokenizer: BpeTokenizer, make_config: MakeConfig
) -> None:
    batch = TrainingBatches(text_store, make_config(), tokenizers=TokenizerPair.shared(tokenizer)).batch(
        np.array([4, 2]), epoch=1
    )
    assert [token for token in batch.source_BS[1].tolist() if token] == text_store.source(2).tolist()


def test_a_part_is_spread_over_the_whole_and_keeps_its_padding(store: TokenStore, make_config: MakeConfig) -> None:
    batch = TrainingBatches(store, make_config()).batch(np.arange(7), epoch=0)
    part = sample_rows(batch, 3)
    assert torch.equal(part.source_BS, batch.source_BS[[0, 2, 4]])
    assert torch.equal(part.target_BT, batch.target_BT[[0, 2, 4]])
    assert part.sentences.tolist() == [0, 2, 4]


def test_pairs_whose_target_the_network_cannot_write_are_left_out(tmp_path: Path, make_config: MakeConfig) -> None:
    """A Neural GPU writes at most ⌈1.5 n⌉ + 1 tokens for a source of n: 4 for 2, 6 for 3."""
    with token_store_written(tmp_path / "store", vocabulary_size=17) as writer:
        sources, targets = [[5, EOS], [5, EOS], [5, 6, EOS]], [[7] * 3 + [EOS], [7] * 4 + [EOS], [7] * 5 + [EOS]]
        writer.append(sources, targets, texts=[("", "")] * 3)
    store = TokenStore.open(tmp_path / "store")
    sizes = NeuralGpuConfig(vocabulary_size=17, d_model=4, height=1, layers=1, length_factor=1.5, length_extra=1)
    fits = pairs_that_fit(new_network(sizes), store)
    assert fits is not None
    assert fits.tolist() == [True, False, True]
    steps = TrainingBatches(store, make_config(), fits=fits).steps(0)
    assert sorted(int(sentence) for step in steps for sentence in step) == [0, 2]
