"""Confidence: the regression finds known probabilities, and a calibration is of one model."""

from pathlib import Path

import numpy as np
import pytest

import transduce
from transduce.errors import DataError, ModelError
from transduce.model_directory import bundled_models, find_model
from transduce.translator.calibrating import calibrate, deciles, held_out_confidence
from transduce.translator.calibration import CALIBRATION, Calibration, read_calibration, write_calibration
from transduce.translator.confidence import FEATURES, fit_confidence


def test_the_regression_finds_known_weights() -> None:
    numbers = np.random.default_rng(3)
    features_NF = numbers.normal(size=(20_000, 3)) * [1.0, 5.0, 0.2] + [0.0, 7.0, -1.0]
    z_N = 0.5 + 1.5 * features_NF[:, 0] - 0.2 * (features_NF[:, 1] - 7.0)
    is_good_N = numbers.random(20_000) < 1 / (1 + np.exp(-z_N))
    fitted = fit_confidence(features_NF, is_good_N)
    slopes = np.array(fitted.weights) / np.array(fitted.deviations)
    assert slopes == pytest.approx([1.5, -0.2, 0.0], abs=0.15)
    assert fitted.bias == pytest.approx(0.5, abs=0.1)


def test_deciles_are_of_the_least_confident_first() -> None:
    confidence_N = np.linspace(1.0, 0.0, 100)
    rows = deciles(confidence_N, confidence_N > 0.5)
    assert [share for _, share in rows] == [0.0] * 5 + [1.0] * 5
    assert [mean for mean, _ in rows] == sorted(mean for mean, _ in rows)


def test_no_pair_has_a_part_in_its_own_confidence_and_every_pair_is_judged() -> None:
    drawn = np.random.default_rng(5)
    features_NF = drawn.normal(size=(3000, FEATURES))
    is_good_N = drawn.random(3000) < 1 / (1 + np.exp(-2 * features_NF[:, 0]))
    confidence_N = held_out_confidence(features_NF, is_good_N)
    assert max(abs(p - share) for p, share in deciles(confidence_N, is_good_N)) < 0.06
    for pair in (0, 1, 2999):
        other_N = is_good_N.copy()
        other_N[pair] ^= True
        changed_N = held_out_confidence(features_NF, other_N) != confidence_N
        assert not changed_N[pair]
        assert not changed_N[pair % 2 :: 2].any(), "its own half is judged by the other half"
        assert changed_N[1 - pair % 2 :: 2].any()


@pytest.mark.parametrize("name", sorted(bundled_models()))
def test_a_bundled_model_is_right_within_a_tenth_on_held_out_pairs(name: str) -> None:
    calibration = read_calibration(find_model(name))
    assert calibration is not None
    assert len(calibration.deciles) == 10
    assert max(abs(confidence - share) for confidence, share in calibration.deciles) < 0.1


def test_too_few_pairs_and_damaged_files_are_refused(tmp_path: Path) -> None:
    translator = transduce.load("en-de", threads=1)
    with pytest.raises(DataError, match="needs 200 pairs at least, and there are 1"):
        calibrate(translator, [("a", "b")])
    (tmp_path / CALIBRATION).write_text('{"version": 2}')
    with pytest.raises(ModelError, match=r"calibration.json is damaged: .*Run `transduce calibrate` again"):
        read_calibration(tmp_path)


def test_a_calibration_of_other_weights_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "weights.safetensors").write_bytes(b"one")
    assert read_calibration(tmp_path) is None
    write_calibration(tmp_path, Calibration(weights="of another model"))
    assert read_calibration(tmp_path) is None
