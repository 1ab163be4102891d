"""Names and shapes of the Transformer's parameters, computed from its sizes.

A model directory is checked against them before memory is allocated for its weights, and without torch.
"""

from typing import TYPE_CHECKING

from transduce.networks.config import Shapes, linear_shapes, named

if TYPE_CHECKING:
    from transduce.model.config import ModelConfig

TIES = {"all": (True, True), "decoder": (False, True), "inputs": (True, False), "none": (False, False)}
"""Whether source and target share a matrix, and whether target and output do."""


def transformer_shapes(config: "ModelConfig") -> Shapes:
    """Return the shape of every parameter; a tied matrix has one name."""
    rows, d = config.vocabulary_size, config.d_model
    inputs_are_one, decoder_is_one = TIES[config.tied]
    return {
        "embeddings.source_VD": (config.source_vocabulary_size or rows, d),
        **({} if inputs_are_one else {"embeddings.target_VD": (rows, d)}),
        **({} if decoder_is_one else {"embeddings.output_VD": (rows, d)}),
        **({"embeddings.output_bias_V": (rows,)} if config.output_bias else {}),
        **named("encoder", _stack(config, _layer(config, "self_attention"), depth=config.encoder_depth)),
        **named("decoder", _stack(config, _decoder_layer(config), depth=config.decoder_depth)),
    }


def language_model_shapes(config: "ModelConfig") -> Shapes:
    """Return the shape of every parameter of a language model with these layers; a tied matrix has one name."""
    rows, d = config.vocabulary_size, config.d_model
    return {
        "embeddings.source_VD": (rows, d),
        **({} if TIES[config.tied][1] else {"embeddings.output_VD": (rows, d)}),
        **({"embeddings.output_bias_V": (rows,)} if config.output_bias else {}),
        **named("decoder", _stack(config, _layer(config, "self_attention"), depth=config.layers)),
    }


def text_encoder_shapes(config: "ModelConfig", *, token_types: int, masked_head: bool) -> Shapes:
    """Return the shape of every parameter of a text encoder with these layers; a tied matrix has one name."""
    rows, d = config.vocabulary_size, config.d_model
    head = {**named("W", linear_shapes(d, d)), **named("norm", _norm(config))} if masked_head else {}
    return {
        "embeddings.source_VD": (rows, d),
        **({} if TIES[config.tied][1] else {"embeddings.output_VD": (rows, d)}),
        **({"embeddings.output_bias_V": (rows,)} if config.output_bias else {}),
        "types_AD": (token_types, d),
        **named("encoder", _stack(config, _layer(config, "self_attention"), depth=config.layers)),
        **named("masked_head", head),
    }


def _stack(config: "ModelConfig", layer: Shapes, *, depth: int) -> Shapes:
    has_table = config.positions == "learned"
    return {
        **({"positions.table_TD": (config.learned_positions, config.d_model)} if has_table else {}),
        **(named("embedding_norm", _norm(config)) if config.embedding_norm else {}),
        **{name: shape for n in range(depth) for name, shape in named(f"layers.{n}", layer).items()},
        **(named("final_norm", _norm(config)) if config.has_final_norm else {}),
    }


def _decoder_layer(config: "ModelConfig") -> Shapes:
    if config.decoder_mixer == "attention":
        return _layer(config, "self_attention", "cross_attention")
    d = config.d_model
    unit = {**named("W", linear_shapes(d, d, bias=False)), **named("W_f", linear_shapes(d, d))}
    norm = named("self_attention_residual.norm", _norm(config))
    return {**named("ssru", unit), **_layer(config, "cross_attention"), **norm}


def _layer(config: "ModelConfig", *attentions: str) -> Shapes:
    d, d_ff = config.d_model, config.d_ff
    feed_forward = {**named("W_1", linear_shapes(d, d_ff)), **named("W_2", linear_shapes(d_ff, d))}
    shapes: dict[str, tuple[int, ...]] = {}
    for name in attentions:
        shapes |= named(name, _attention(config))
    shapes |= named("feed_forward", feed_forward)
    for name in (*attentions, "feed_forward"):
        shapes |= named(f"{name}_residual.norm", _norm(config))
    return shapes


def _attention(config: "ModelConfig") -> Shapes:
    d, keys, values = config.d_model, config.heads * config.query_width, config.heads * config.value_width
    widths = {"W_Q": (d, keys), "W_K": (d, keys), "W_V": (d, values), "W_O": (values, d)}
    is_additive = config.scores == "additive"
    shapes: dict[str, tuple[int, ...]] = {"v_HE": (config.heads, config.query_width)} if is_additive else {}
    for name, (inputs, outputs) in widths.items():
        shapes |= named(name, linear_shapes(inputs, outputs, bias=config.attention_bias))
    return shapes


def _norm(config: "ModelConfig") -> Shapes:
    own = {"layer": ("weight", "bias"), "batch": ("weight", "bias", "mean_D", "variance_D")}[config.normalization]
    return dict.fromkeys(own, (config.d_model,))
