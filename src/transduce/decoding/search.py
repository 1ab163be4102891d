"""Search for the outputs of a batch of sources, by beam search or by sampling, as `DecodingConfig` says."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from transduce.decoding.beam_search import NOTHING, beam_search
from transduce.decoding.config import DecodingConfig
from transduce.decoding.hypothesis import Hypothesis
from transduce.decoding.request import OutputRequest
from transduce.decoding.sampling import sample
from transduce.decoding.shortlisted import Shortlisted
from transduce.networks.beam_searching import BeamRequest, BeamSearching
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
    if isinstance(stepper, BeamSearching) and not config.sample:
        return _search_inside(stepper, source_BS, config, prefixes=prefixes, lists=lists)
    if lists is not None:
        return _search_among(Shortlisted(stepper, lists), source_BS, config, numbers=numbers, prefixes=prefixes)
    if config.sample:
        return sample(stepper, source_BS, config, numbers=numbers, prefixes=prefixes)
    return beam_search(stepper, source_BS, config, prefixes=prefixes)


def _search_inside(
    stepper: Any,  # noqa: ANN401 - both a Stepwise and BeamSearching
    source_BS: Ids,
    config: DecodingConfig,
    *,
    prefixes: Sequence[Sequence[int]] | None,
    lists: Sequence[Sequence[int]] | None,
) -> list[list[Hypothesis]]:
    """Let the model run the search; scores and empty results are those of `beam_search`."""
    request = OutputRequest.of(stepper, source_BS, config, prefixes=prefixes)
    found = stepper.beam_search(
        source_BS,
        BeamRequest(
            beam=config.beam,
            alternatives=config.alternatives,
            length_penalty=config.length_penalty,
            stops_when_full=request.stops_when_full,
            minimum_length=config.minimum_length,
            limits=request.limit_B.tolist(),
            prefixes=[()] * len(source_BS) if prefixes is None else prefixes,
            lists=lists or (),
        ),
    )
    return [[request.hypothesis(*one) for one in own] or [NOTHING] for own in found]


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
