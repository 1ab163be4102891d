"""The samples of a language model during its training."""

from pathlib import Path

import pytest
import torch
from tests.data.test_text_preparation import prepared

from transduce.model.language_model import LanguageModel
from transduce.model.language_model_config import LanguageModelConfig
from transduce.pipeline.text_validation import TextValidator
from transduce.progress import Silent
from transduce.training.arithmetic import Arithmetic
from transduce.training.distributed import World
from transduce.translator.generating import ENDS


@pytest.mark.parametrize("unit", ["stream", "document", "line"])
def test_a_sample_ends_where_its_unit_does(tmp_path: Path, unit: str) -> None:
    found = prepared(tmp_path, unit=unit, held_out_tail=0.3)
    assert found.valid is not None
    size = found.tokenizers.target.vocabulary_size
    config = LanguageModelConfig(vocabulary_size=size, layers=1, heads=2, d_model=8, learned_positions=16, tied=False)
    network = LanguageModel(config)
    network.embeddings.output_VD.data[:] = 0  # every token is equally probable
    network.embeddings.output_VD.data[found.tokenizers.target.special.end] = 100 * torch.randn(8)
    validator = TextValidator(
        network,
        found.valid,
        found.tokenizers,
        tokens_at_once=100,
        arithmetic=Arithmetic(torch.device("cpu"), "float32"),
        world=World(),
        progress=Silent(),
    )
    whole = [sample.translation for sample in validator.samples()]
    assert any("\n\n" in text for text in whole)
    validator.end = end = ENDS.get(unit)
    assert [sample.translation for sample in validator.samples()] == [
        text if end is None else text.split(end)[0] for text in whole
    ]
