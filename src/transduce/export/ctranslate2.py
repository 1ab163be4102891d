"""Writes a directory that CTranslate2 loads, and verifies that it computes the same log-probabilities as our model.

This module fills in a CTranslate2 specification, and CTranslate2 writes the files. Positions are written as a table, in
the paper's order, or of zeros if the network has none; so every kind of positions can be expressed. Unscaled scores
are written as a query scale of 1. A network that is not in `HANDLED` is refused.

After writing, CTranslate2 loads the directory and scores sentence pairs, and the log-probabilities must equal ours.
Translations cannot be compared, because the search of CTranslate2 uses another length penalty.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from transduce.errors import ModelError
from transduce.export.program_tokenizers import ProgramTokenizer, program_tokenizers
from transduce.files import directory_written_atomically
from transduce.model.config import SIZES, ModelConfig
from transduce.model.positional_encoding import computed_positions
from transduce.model.transformer import Transformer
from transduce.model_directory import ModelDirectory
from transduce.networks.config import NetworkConfig
from transduce.networks.handled import Handled
from transduce.networks.log_probabilities import token_log_probabilities

LONGEST = 1024
"""Rows of the position tables, unless positions are learned; CTranslate2 refuses a longer sentence."""
_PAIRS = 8  # number of sentence pairs to verify the written model with
_DIFFERENCE = {"float32": 1e-3, "int8": 0.5}  # largest mean difference in log-probability that rounding can explain

SHARED_PIECES, SOURCE_PIECES, TARGET_PIECES = "sentencepiece.model", "source.spm", "target.spm"
CTranslate2Weights = Literal["float32", "int8"]
_ACTIVATIONS = {
    "relu": "RELU",
    "gelu": "GELU",
    "gelu_tanh": "GELUTanh",
    "gelu_sigmoid": "GELUSigmoid",
    "silu": "SWISH",
}
HANDLED = Handled(
    "transformer",
    {
        **SIZES,
        "norm": ("post", "pre"),
        "norm_epsilon": "any",
        "final_norm": (None, False, True),
        "positions": ("sinusoidal", "sinusoidal_halves", "concatenated", "learned", "none"),
        "first_position": "any",
        "scores": ("scaled", "unscaled"),
        "attention_bias": (False, True),
        "activation": tuple(_ACTIVATIONS),
        "tied": ("all", "decoder", "inputs", "none"),
        "source_vocabulary_size": "any",
        "embedding_scale": "any",
        "embedding_norm": (False, True),
        "start_from_zeros": (False, True),
        "output_bias": (False, True),
    },
)


def obstacle(config: NetworkConfig) -> str | None:
    """Return the part of a network that CTranslate2 does not support, or None."""
    found = HANDLED.obstacle(config)
    if found is None and isinstance(config, ModelConfig) and config.query_width != config.value_width:
        return f"d_k = {config.query_width} and d_v = {config.value_width} (only equal ones)"
    return found


def export_ctranslate2(model: ModelDirectory, folder: Path, *, weights: CTranslate2Weights = "float32") -> float:
    """Write a CTranslate2 directory to `folder`, which must not exist, and verify it.

    Return the largest difference between its and our log-probability of a token.
    """
    if folder.exists():
        raise ModelError(f"{folder} exists already. Choose another name, or remove it first.")
    config = model.description.architecture
    if (found := obstacle(config)) or not isinstance(config, ModelConfig):
        raise ModelError(f"CTranslate2 does not support this model's {found}. Export another model.")
    source, target = program_tokenizers(model, program="CTranslate2", vocabularies=2)
    library = _library()
    specification = _specification(library, config)
    network = model.network()
    assert isinstance(network, Transformer)
    _fill(specification, network)
    specification.register_source_vocabulary(list(source.pieces))
    specification.register_target_vocabulary(list(target.pieces))
    pieces, special, settings = target.pieces, model.tokenizers.special, specification.config
    settings.bos_token = settings.decoder_start_token = pieces[special.start]
    settings.eos_token, settings.unk_token = pieces[special.end], pieces[special.unknown]
    settings.add_source_eos = True
    settings.layer_norm_epsilon = config.norm_epsilon
    specification.validate()
    specification.optimize(quantization=weights)
    with directory_written_atomically(folder) as beside:
        specification.save(str(beside))
        for name, content in piece_files(source, target).items():
            (beside / name).write_bytes(content)
        (beside / "README.md").write_text(_card(model, weights), encoding="utf-8")
        return _verify(library, beside, network, (source, target), weights=weights)


def piece_files(source: ProgramTokenizer, target: ProgramTokenizer) -> dict[str, bytes]:
    """Return the sentencepiece models by the names of their files: one for both sides, or two."""
    if source.piece_file == target.piece_file:
        return {SHARED_PIECES: target.piece_file}
    return {SOURCE_PIECES: source.piece_file, TARGET_PIECES: target.piece_file}


def _library() -> Any:  # noqa: ANN401 - a module without types
    try:
        import ctranslate2
        import ctranslate2.specs
    except ImportError:
        raise ModelError(
            "CTranslate2 is not installed; the export needs it to write and verify the directory. "
            "Install it with: pip install 'transduce[ctranslate2]'"
        ) from None
    return ctranslate2


def _specification(library: Any, config: ModelConfig) -> Any:  # noqa: ANN401
    specs = library.specs
    common = {
        "pre_norm": True,  # allows a final norm; `_fill` then sets where the norms are
        "activation": getattr(specs.Activation, _ACTIVATIONS[config.activation]),
        "no_final_norm": not config.has_final_norm,
        "layernorm_embedding": config.embedding_norm,
    }
    if config.query_width * config.heads != config.d_model:
        common["head_dim"] = config.query_width
    return specs.TransformerSpec(
        specs.TransformerEncoderSpec(config.encoder_depth, config.heads, **common),
        specs.TransformerDecoderSpec(config.decoder_depth, config.heads, **common),
    )


def _fill(specification: Any, network: Transformer) -> None:  # noqa: ANN401
    config, weights = network.config, {name: _array(value) for name, value in network.named_parameters()}
    embeddings = network.embeddings
    specification.encoder.embeddings[0].weight = _array(embeddings.source_VD)
    specification.decoder.embeddings.weight = _array(embeddings.target_VD)
    specification.decoder.projection.weight = _array(embeddings.output_VD)
    if embeddings.output_bias_V is not None:
        specification.decoder.projection.bias = _array(embeddings.output_bias_V)
    specification.decoder.start_from_zero_embedding = config.start_from_zeros
    for stack, name in ((specification.encoder, "encoder"), (specification.decoder, "decoder")):
        stack.pre_norm = config.norm == "pre"
        stack.scale_embeddings = np.float32(config.embedding_factor)
        stack.position_encodings.encodings = _positions(config, weights.get(f"{name}.positions.table_TD"))
        if config.embedding_norm:
            _fill_norm(stack.layernorm_embedding, weights, f"{name}.embedding_norm")
        if config.has_final_norm:
            _fill_norm(stack.layer_norm, weights, f"{name}.final_norm")
        for number, layer in enumerate(stack.layer):
            _fill_layer(layer, weights, f"{name}.layers.{number}", is_unscaled=config.scores == "unscaled")


def _fill_layer(layer: Any, weights: Mapping[str, "np.ndarray[Any, Any]"], name: str, *, is_unscaled: bool) -> None:  # noqa: ANN401
    attentions = [("self_attention", layer.self_attention, [("W_Q", "W_K", "W_V"), ("W_O",)])]
    if f"{name}.cross_attention.W_Q.weight" in weights:
        attentions.append(("cross_attention", layer.attention, [("W_Q",), ("W_K", "W_V"), ("W_O",)]))
    for sublayer, attention, fused in attentions:
        _fill_norm(attention.layer_norm, weights, f"{name}.{sublayer}_residual.norm")
        for linear, parts in zip(attention.linear, fused, strict=True):
            _fill_linear(linear, weights, [f"{name}.{sublayer}.{part}" for part in parts])
        if is_unscaled:
            attention.queries_scale = 1.0
    _fill_norm(layer.ffn.layer_norm, weights, f"{name}.feed_forward_residual.norm")
    _fill_linear(layer.ffn.linear_0, weights, [f"{name}.feed_forward.W_1"])
    _fill_linear(layer.ffn.linear_1, weights, [f"{name}.feed_forward.W_2"])


def _fill_linear(linear: Any, weights: Mapping[str, "np.ndarray[Any, Any]"], names: Sequence[str]) -> None:  # noqa: ANN401
    linear.weight = np.concatenate([weights[f"{name}.weight"] for name in names])
    if f"{names[0]}.bias" in weights:
        linear.bias = np.concatenate([weights[f"{name}.bias"] for name in names])


def _fill_norm(norm: Any, weights: Mapping[str, "np.ndarray[Any, Any]"], name: str) -> None:  # noqa: ANN401
    norm.gamma, norm.beta = weights[f"{name}.weight"], weights[f"{name}.bias"]


def _positions(config: ModelConfig, learned: "np.ndarray[Any, Any] | None") -> "np.ndarray[Any, Any]":
    if learned is not None:
        return learned
    return _array(computed_positions(config, LONGEST))


def _array(tensor: Tensor) -> "np.ndarray[Any, Any]":
    # Copy: CTranslate2 quantises in place, and `_verify` still needs our weights.
    return tensor.detach().float().clone(memory_format=torch.contiguous_format).numpy()


@torch.no_grad()
def _verify(
    library: Any,  # noqa: ANN401
    folder: Path,
    network: Transformer,
    tokenizers: tuple[ProgramTokenizer, ProgramTokenizer],
    *,
    weights: CTranslate2Weights,
) -> float:
    """Return the largest difference in the log-probability of a token; raise an error if the mean is too large."""
    pairs = _random_pairs(network)
    source, target = (tokenizer.pieces for tokenizer in tokenizers)
    translator = library.Translator(str(folder), compute_type=weights)
    theirs = ctranslate2_log_probabilities(translator, pairs, target, source_pieces=source)
    differences: list[float] = []
    for (source_S, target_T), found in zip(pairs, theirs, strict=True):
        hidden_BTD = network(torch.tensor([source_S]), torch.tensor([target_T]))
        ours = token_log_probabilities(hidden_BTD, network.output, torch.tensor([target_T]))[0].tolist()
        differences += [abs(a - b) for a, b in zip(ours, found, strict=True)]
    mean = sum(differences) / len(differences)
    if not mean <= _DIFFERENCE[weights]:  # written with `not`, so that NaN is refused
        raise ModelError(
            f"CTranslate2 {library.__version__} computes other log-probabilities than this model ({mean:.2g} apart on "
            "average), so nothing was written. This is a bug in the export, not in the model: please report it."
        )
    return max(differences)


def ctranslate2_log_probabilities(
    translator: Any,  # noqa: ANN401
    pairs: Sequence[tuple[Sequence[int], Sequence[int]]],
    pieces: Sequence[str],
    *,
    source_pieces: Sequence[str] | None = None,
) -> list[list[float]]:
    """Return CTranslate2's log p of each target token; it adds the end tokens of source and target itself."""
    found = translator.score_batch(
        [[(source_pieces or pieces)[token] for token in source[:-1]] for source, _ in pairs],
        [[pieces[token] for token in target[:-1]] for _, target in pairs],
    )
    return [list(result.log_probs) for result in found]


def _random_pairs(network: Transformer) -> list[tuple[list[int], list[int]]]:
    config, special = network.config, network.tokens
    generator = torch.Generator().manual_seed(1)
    longest = min(40, config.learned_positions) if config.positions == "learned" else 40

    ordinary = [
        [token for token in range(size) if token not in special.ids]
        for size in (config.source_vocabulary_size or config.vocabulary_size, config.vocabulary_size)
    ]

    def sentence(number: int, tokens: Sequence[int]) -> list[int]:
        length = 1 + number * (longest - 2) // _PAIRS
        drawn = torch.randint(len(tokens), (length,), generator=generator)
        return [*(tokens[place] for place in drawn.tolist()), special.end]

    return [(sentence(number, ordinary[0]), sentence(_PAIRS - 1 - number, ordinary[1])) for number in range(_PAIRS)]


def _card(model: ModelDirectory, weights: CTranslate2Weights) -> str:
    languages = model.description.languages
    return (
        f"# {languages.source or 'source'} to {languages.target or 'target'}, exported by transduce\n\n"
        f"A CTranslate2 directory, weights in {weights}: `ctranslate2.Translator` loads it. Split text into pieces "
        "with its sentencepiece model; CTranslate2 adds the end token.\n\n"
        "The export compared its log-probabilities with those of the model. Its search differs: it divides scores "
        "by length ** penalty, and the paper by ((5 + length) / 6) ** penalty, so translations can differ. "
        'Give `disable_unk=True`, and `suppress_sequences=[["<pad>"], ["<s>"]]`, to forbid the tokens '
        "that transduce forbids. CTranslate2 does not protect placeholders (`%s`, tags, addresses): the model "
        "translates them as text.\n"
    )
