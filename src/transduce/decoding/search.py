"""Search for the outputs of a batch of sources, by beam search or by sampling, as `DecodingConfig` says."""

from collections.abc import Sequence
from dataclasses import replace

from transduce.decoding.beam_search import beam_search
from transduce.decoding.config import DecodingConfig
from transduce.decoding.hypothesis import Hypothesis
from transduce.decoding.sampling import sample
from transduce.decoding.shortlisted import Shortlisted
from transduce.networks.stepwise import Ids, State, Stepwise


def search(
    stepper: Stepwise[State],
    source_BS: Ids,
    config: DecodingConfig,
    *,
    numbers: Sequence[int] | None = None,
    prefixes: Sequence[Sequence[int]] | None = None,
    lists: Sequence[Sequence[int]] | None = None,
) -> list[list[Hypothesis]]:
    """Return the outputs of each sentence of a padded batch: by beam search, or drawn if `config` says so.

    `prefixes` holds, for each sentence, the tokens that its outputs must begin with; a prefix may be empty. `numbers`
    are the keys of the sentences for the random draws, such as their places in the whole text; unless given, their
    places in the batch. `lists` holds, for each sentence, all tokens that its outputs may contain, its prefix included.
    """
    if lists is not None:
        return _search_among(Shortlisted(stepper, lists), source_BS, config, numbers=numbers, prefixes=prefixes)
    if config.sample:
        return sample(stepper, source_BS, config, numbers=numbers, prefixes=prefixes)
    return beam_search(stepper, source_BS, config, prefixes=prefixes)


def _search_among(
    stepper: Shortlisted,
    source_BS: Ids,
    config: DecodingConfig,
    *,
    numbers: Sequence[int] | None,
    prefixes: Sequence[Sequence[int]] | None,
) -> list[list[Hypothesis]]:
    if prefixes is not None:
        prefixes = [stepper.numbers_of(sentence, prefix) for sentence, prefix in enumerate(prefixes)]
    found = search(stepper, source_BS, config, numbers=numbers, prefixes=prefixes)
    return [
        [replace(hypothesis, tokens=stepper.tokens_of(sentence, hypothesis.tokens)) for hypothesis in own]
        for sentence, own in enumerate(found)
    ]
