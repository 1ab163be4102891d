"""Sizes that cannot be are refused with a message that says what to do."""

import pytest
from pydantic import ValidationError

from transduce.experiment import meanings_of
from transduce.model import ModelConfig


def fault(**settings: object) -> str:
    with pytest.raises(ValidationError) as caught:
        ModelConfig.model_validate(settings)
    return str(caught.value)


def test_the_defaults_are_the_base_model_of_table_3() -> None:
    base = ModelConfig()
    assert (base.encoder_depth, base.decoder_depth, base.d_model, base.d_ff, base.heads) == (6, 6, 512, 2048, 8)
    assert (base.query_width, base.value_width, base.dropout, base.vocabulary_size) == (64, 64, 0.1, 37_000)


def test_every_option_defaults_to_the_paper() -> None:
    base = ModelConfig()
    assert (base.norm, base.positions, base.scores, base.activation, base.tied) == (
        "post",
        "sinusoidal",
        "scaled",
        "relu",
        "all",
    )
    assert (base.attention_bias, base.attention_dropout, base.feed_forward_dropout) == (False, 0.0, 0.0)
    assert (base.norm_epsilon, base.has_final_norm, base.decoder_mixer, base.first_position) == (
        *(1e-6, False, "attention"),
        0,
    )
    assert (base.embedding_factor, base.embedding_norm, base.start_from_zeros, base.output_bias) == (
        *(512**0.5, False),
        *(False, False),
    )


def test_a_width_that_heads_cannot_share_is_refused_with_the_two_nearest() -> None:
    message = fault(d_model=514, heads=8)
    assert "d_model = 514 cannot be shared equally by 8 heads" in message
    assert "Set it to 512 or 520, change heads, or give d_k and d_v." in message
    assert ModelConfig(d_model=512, heads=8)
    assert ModelConfig(d_model=520, heads=8)


def test_a_width_below_the_number_of_heads_is_never_answered_with_width_0() -> None:
    assert "Set it to 8, change heads" in fault(d_model=4, heads=8)


@pytest.mark.parametrize("given", [{"d_k": 5}, {"d_v": 5}])
def test_one_width_given_still_leaves_the_other_to_be_shared(given: dict[str, int]) -> None:
    assert "give d_k and d_v" in fault(d_model=14, heads=3, **given)


def test_free_widths_need_no_sharing() -> None:
    config = ModelConfig(d_model=14, heads=3, d_k=5, d_v=7)
    assert (config.query_width, config.value_width) == (5, 7)


@pytest.mark.parametrize("positions", ["sinusoidal", "sinusoidal_halves", "concatenated"])
def test_an_odd_width_cannot_hold_pairs_of_sines(positions: str) -> None:
    message = fault(d_model=13, heads=1, positions=positions)
    assert "d_model = 13 is odd, but positions are pairs of a sine and a cosine." in message
    assert 'Set it to 14, or choose positions = "learned".' in message


@pytest.mark.parametrize("positions", ["learned", "none"])
def test_an_odd_width_is_fine_without_sines(positions: str) -> None:
    ModelConfig.model_validate({"d_model": 13, "heads": 1, "positions": positions})


@pytest.mark.parametrize(
    "settings",
    [
        *(
            {"dropout": 1.0},
            {"dropout": -0.1},
            {"layers": 0},
            {"vocabulary_size": 4},
            {"norm": "both"},
            {"d_modle": 512},
        ),
        *({"norm_epsilon": 0.0}, {"first_position": -1}, {"embedding_scale": 0.0}, {"d_modle": 512}),
        {"source_vocabulary_size": 4, "tied": "none"},
    ],
)
def test_what_makes_no_sense_is_refused_by_name(settings: dict[str, object]) -> None:
    assert next(iter(settings)) in fault(**settings)


def test_a_configuration_cannot_change_once_it_exists() -> None:
    config = ModelConfig()
    with pytest.raises(ValidationError, match="frozen"):
        config.heads = 4  # type: ignore[misc]


def test_depth_is_shared_unless_given_apart() -> None:
    config = ModelConfig(layers=3, decoder_layers=1)
    assert (config.encoder_depth, config.decoder_depth) == (3, 1)


def test_every_field_says_what_it_means() -> None:
    assert set(ModelConfig.model_fields) == set(meanings_of(ModelConfig))


@pytest.mark.parametrize("tied", ["all", "inputs"])
def test_two_vocabularies_cannot_share_a_matrix(tied: str) -> None:
    message = fault(source_vocabulary_size=999, tied=tied)
    assert f'tied = "{tied}" makes one matrix of the source and the target embedding' in message
    assert 'Set tied = "decoder" or "none", or leave out source_vocabulary_size.' in message
    assert ModelConfig(source_vocabulary_size=999, tied="decoder")


@pytest.mark.parametrize("positions", ["learned", "none"])
def test_only_sinusoids_have_a_first_position(positions: str) -> None:
    message = fault(first_position=2, positions=positions)
    assert f'first_position = 2 numbers sinusoids, but positions = "{positions}". Leave out first_position.' in message


@pytest.mark.parametrize(
    ("norm", "final_norm", "has_final_norm"),
    [("post", None, False), ("pre", None, True), ("post", True, True), ("pre", False, False)],
)
def test_stacks_end_in_a_norm_with_pre_norm_unless_it_is_said(
    norm: str, final_norm: bool | None, has_final_norm: bool
) -> None:
    assert ModelConfig.model_validate({"norm": norm, "final_norm": final_norm}).has_final_norm is has_final_norm
