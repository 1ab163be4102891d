"""Test sentences that were trained on are found, and the score without them is that of the others alone."""

import numpy as np

from transduce.data.sentence_hashes import hashes_after_folding, sentence_hashes
from transduce.evaluation.overlap import overlap_with_training, trained_on
from transduce.evaluation.protocols import detokenised, paper
from transduce.evaluation.scores import score

TRAINING = np.unique(sentence_hashes(["A dog runs.", "Two cats sleep.", "It rains."]))


def test_a_source_is_found_in_any_spelling_that_means_the_same_to_the_model() -> None:
    sources = ["A dog runs.", "A dog walks.", "  Two  cats\u00a0sleep. ", "it rains.", ""]
    assert trained_on(sources, TRAINING) == [True, False, True, False, False]


def test_case_spaces_and_punctuation_do_not_hide_a_source_from_a_model_that_keeps_folded_hashes() -> None:
    training = ["A dog runs.", "Two cats sleep.", "It rains."]
    known = np.unique(np.concatenate([sentence_hashes(training), hashes_after_folding(training)]))
    assert trained_on(["a dog runs .", "TWO CATS SLEEP", "it rained", "It rains!"], known) == [True, True, False, True]


def test_the_score_without_them_is_that_of_the_others_alone() -> None:
    sources = ["A dog runs.", "A bird sings in the old garden.", "It rains.", "The moon is full and bright tonight."]
    references = ["Ein Hund.", "Ein Vogel singt im alten Garten.", "Es regnet.", "Der Mond ist heute voll und hell."]
    hypotheses = ["Ein Hund.", "Ein Vogel singt im Garten.", "Es regnet.", "Der Mond ist voll und hell heute."]
    for protocol in (detokenised(), paper("de")):
        found = overlap_with_training(
            sources, hypotheses, [references, references], training_hashes=TRAINING, protocol=protocol
        )
        others = score(hypotheses[1::2], [references[1::2], references[1::2]], protocol=protocol)
        assert found.sentences == 2
        assert found.scores_without == others
        assert others != score(hypotheses, [references, references], protocol=protocol)


def test_nothing_is_scored_twice_where_all_or_none_were_trained_on() -> None:
    for sources, count in ((["A dog runs.", "It rains."], 2), (["New.", "Newer."], 0)):
        found = overlap_with_training(
            sources, ["x", "y"], [["x", "y"]], training_hashes=TRAINING, protocol=detokenised()
        )
        assert (found.sentences, found.scores_without) == (count, ())


def test_a_model_that_was_trained_on_nothing_knows_nothing() -> None:
    assert trained_on(["A dog runs."], np.zeros(0, dtype=np.uint64)) == [False]
