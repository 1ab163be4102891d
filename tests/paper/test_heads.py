"""Relations between words by hand; probes that find what is there and only that; layers of equal size."""

import pytest
import torch

from transduce.demo.corpus import Constituent
from transduce.paper.heads import anaphora, long_distance, structure
from transduce.paper.labelled_model import LabelledSentence
from transduce.paper.probes import probe_accuracy
from transduce.paper.recall import layer_of

WORDS = ["Sophie", "followed", "the", "two", "big", "pigs", "although", "she", "was", "tired", "."]
SOPHIE = Constituent(0, "subject", (0,), (), "singular", "feminine")
FOLLOWED = Constituent(0, "verb", (1,), (), "singular")
PIGS = Constituent(0, "dative", (5,), (), "plural", "neuter")
WAS = Constituent(1, "verb", (8,), (), "singular")
SHE = Constituent(1, "subject", (7,), (), "singular", "feminine")
SENTENCE = LabelledSentence(WORDS, [], [], [[n] for n in range(len(WORDS))], (SOPHIE, FOLLOWED, PIGS, WAS, SHE))


def test_relations_by_hand() -> None:
    assert list(long_distance(SENTENCE, WORDS)) == [(FOLLOWED, PIGS)]
    assert list(anaphora(SENTENCE, WORDS)) == [(SHE, SOPHIE)]
    assert list(structure(SENTENCE, WORDS)) == [(SOPHIE, FOLLOWED), (SHE, WAS)]


def test_a_probe_finds_what_is_there_and_only_that() -> None:
    torch.manual_seed(3)
    fit_ND, test_ND = torch.randn(4000, 12), torch.randn(4000, 12)

    def labels(x_ND: torch.Tensor) -> list[str]:
        return ["plural" if value > 0 else "singular" for value in (x_ND[:, 4] - x_ND[:, 7]).tolist()]

    assert probe_accuracy(fit_ND, labels(fit_ND), test_ND, labels(test_ND)) > 0.95
    noise = labels(torch.randn(4000, 12))
    assert probe_accuracy(fit_ND, noise, test_ND, noise[::-1]) == pytest.approx(0.5, abs=0.05)


def test_layers_that_recall_have_equal_parameters() -> None:
    kinds = ("self-attention", "self-attention (restricted)", "recurrent", "convolutional")
    sizes = [sum(each.numel() for each in layer_of(kind).parameters()) for kind in kinds]
    assert max(sizes) <= 1.05 * min(sizes)
