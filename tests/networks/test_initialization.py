"""Weights start out as in the authors' code: bounds and standard deviations worked out by hand."""

import subprocess
import sys

import pytest
import torch
from torch import nn

from transduce.model import ModelConfig, Transformer
from transduce.networks.initialization import glorot_linear, normal_rows


@pytest.mark.parametrize(
    ("inputs", "outputs", "bound"),
    [(512, 512, 0.07654655), (512, 2048, 0.04841229), (1024, 4096, 0.03423266)],
)
def test_matrices_are_uniform_within_glorots_bound(inputs: int, outputs: int, bound: float) -> None:
    weight = glorot_linear(inputs, outputs).weight
    assert weight.shape == (outputs, inputs)
    largest = weight.abs().max().item()
    assert 0.9999 * bound < largest <= bound
    assert weight.std().item() == pytest.approx(bound / 3**0.5, rel=0.01)  # of a uniform distribution


@pytest.mark.parametrize(("d_model", "deviation"), [(512, 0.04419417), (1024, 0.03125)])
def test_embeddings_are_normal_with_the_root_of_the_width(d_model: int, deviation: float) -> None:
    table = normal_rows(997, d_model)
    assert table.std().item() == pytest.approx(deviation, rel=0.01)
    assert table.abs().max().item() > 3 * deviation  # a uniform distribution of that deviation stops at 1.73


def test_a_scaled_embedding_has_unit_variance_beside_its_position() -> None:
    model = Transformer(ModelConfig(vocabulary_size=997, layers=1, d_model=256, d_ff=8, heads=1))
    embedded = model.embeddings.embed_source(torch.arange(997)[None])
    assert embedded.std().item() == pytest.approx(1.0, rel=0.01)


def test_every_weight_of_every_option_starts_as_it_should() -> None:
    model = Transformer(
        ModelConfig(
            layers=1, vocabulary_size=101, d_model=64, d_ff=128, positions="learned", scores="additive", norm="pre",
            attention_bias=True, tied="none",
        )
    )  # fmt: skip
    norms = [module for module in model.modules() if isinstance(module, nn.LayerNorm)]
    linears = [module for module in model.modules() if isinstance(module, nn.Linear)]
    assert len(norms) == 7
    assert len(linears) == 3 * 4 + 2 * 2
    assert all(bool((norm.weight == 1).all()) and bool((norm.bias == 0).all()) for norm in norms)
    for linear in linears:
        assert bool((linear.bias == 0).all())
        bound = (6 / (linear.in_features + linear.out_features)) ** 0.5
        assert 0.97 * bound < linear.weight.abs().max().item() <= bound
    tables = [p for name, p in model.named_parameters() if "embeddings" in name or "table_TD" in name]
    assert len(tables) == 3 + 2
    assert all(table.std().item() == pytest.approx(1 / 8, rel=0.05) for table in tables)
    vectors = [p for name, p in model.named_parameters() if name.endswith("v_HE")]
    assert len(vectors) == 3
    assert all(0 < vector.std().item() < 1 for vector in vectors)


def test_layers_are_alike_in_shape_and_not_in_weights() -> None:
    model = Transformer(ModelConfig(layers=2, vocabulary_size=11, d_model=8, d_ff=8, heads=2))
    first, second = (dict(layer.named_parameters()) for layer in model.encoder.layers)
    assert first.keys() == second.keys()
    matrices = [name for name, parameter in first.items() if parameter.dim() == 2]
    assert matrices
    assert all(not torch.equal(first[name], second[name]) for name in matrices)


def test_an_empty_network_is_made_without_loading_torchs_compiler() -> None:
    """Loading a model starts from an empty network; the compiler would add seconds to the first translation."""
    program = (
        "import sys, torch; from transduce.model import ModelConfig, Transformer\n"
        "with torch.device('meta'): Transformer(ModelConfig(layers=1, positions='learned', scores='additive'))\n"
        "print([name for name in ('torch._dynamo', 'torch._inductor', 'sympy') if name in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
