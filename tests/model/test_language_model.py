"""What holds of a language model, beyond the laws of every network (tests/rivals/test_laws.py)."""

import torch
from torch.testing import assert_close

from transduce.model.config import ModelConfig
from transduce.model.language_model import LanguageModel
from transduce.model.language_model_config import LanguageModelConfig
from transduce.model.masks import visible_to_the_left
from transduce.model.transformer import Transformer
from transduce.networks.cost import parameter_count

SMALL = LanguageModelConfig(vocabulary_size=29, d_model=14, layers=3, heads=2, d_ff=23, learned_positions=17)


def made(config: LanguageModelConfig = SMALL) -> LanguageModel:
    torch.manual_seed(5)
    return LanguageModel(config).double().eval()


def test_a_text_after_its_prompt_is_predicted_as_the_whole_text_is() -> None:
    network, text_BT = made(), torch.randint(4, 29, (3, 11))
    start_B1 = torch.full((3, 1), 2)
    whole_BTD = network(start_B1, text_BT)
    assert_close(network(torch.cat([start_B1, text_BT[:, :4]], dim=1), text_BT[:, 4:]), whole_BTD[:, 4:])


def test_it_is_the_encoder_of_the_paper_with_the_mask_of_the_decoder() -> None:
    config = LanguageModelConfig(
        vocabulary_size=29, d_model=14, layers=2, heads=2, d_ff=23, norm="post", positions="sinusoidal",
        attention_bias=False, activation="relu", embedding_scale=None, norm_epsilon=1e-6,
    )  # fmt: skip
    network = made(config)
    paper = Transformer(ModelConfig(vocabulary_size=29, d_model=14, layers=2, heads=2, d_ff=23)).double().eval()
    weights = {name.replace("decoder.", "encoder."): value for name, value in network.state_dict().items()}
    paper.load_state_dict({**paper.state_dict(), **weights, "embeddings.target_VD": weights["embeddings.source_VD"]})
    read_BT, labels_BT = torch.tensor([[2, 7, 8, 9]]), torch.tensor([[7, 8, 9, 10]])
    encoded_BTD = paper.encoder(paper.embeddings.embed_source(read_BT), visible_BHSS=visible_to_the_left(4))
    assert_close(network(torch.tensor([[2]]), labels_BT), encoded_BTD)


def test_each_head_is_a_triangle() -> None:
    block = made().attention([2], [7, 8, 9, 10, 3])["decoder"]
    assert (block.queries, block.keys, tuple(block.weights_LHQK.shape)) == ("target", "read", (3, 2, 5, 5))
    assert_close(block.weights_LHQK.sum(dim=-1), torch.ones(3, 2, 5).double())
    assert block.weights_LHQK.triu(diagonal=1).abs().sum() == 0
    assert (block.weights_LHQK.tril() > 0).sum() == 3 * 2 * 15


def test_the_smallest_gpt_2_model_has_its_124_million_parameters() -> None:
    assert parameter_count(LanguageModelConfig(vocabulary_size=50_257)) == 124_439_808


def test_a_prompt_leaves_room_for_the_rest_of_the_positions() -> None:
    network = made()
    assert network.longest_target(1) == 17
    assert network.longest_target(10) == 8
    network(torch.randint(4, 29, (1, 10)), torch.randint(4, 29, (1, 8)))
    assert made(SMALL.model_copy(update={"positions": "none"})).longest_target(5) is None
