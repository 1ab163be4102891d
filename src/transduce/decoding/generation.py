"""Text from a language model, one token at a time.

The end token is a line break, so generation goes on after it. A model with a bounded context reads on with the later
half of its tokens when the context is full, so that the cost of a token stays the same on average.
"""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import numpy as np
from pydantic import BaseModel, Field, PositiveInt, model_validator

from transduce.decoding.config import DecodingConfig
from transduce.decoding.sampling import TokenSampler, uniform_numbers
from transduce.decoding.search import search
from transduce.networks.stepwise import Stepwise
from transduce.text.tokenizer import Tokenizer


class GenerationConfig(BaseModel, frozen=True, extra="forbid"):
    """How a language model writes."""

    tokens: PositiveInt = 200
    """The most tokens to write."""
    temperature: Annotated[float, Field(ge=0.0)] = 0.8
    """Divides the log-probabilities before a token is drawn; 0 takes the most probable token."""
    top_k: PositiveInt | None = None
    """Draw only among this many most probable tokens."""
    top_p: Annotated[float, Field(gt=0.0, le=1.0)] = 1.0
    """Draw only among the most probable tokens that hold this share of the probability."""
    beam: PositiveInt | None = None
    """Write the most probable rest of the line, as beam search of this width finds it, instead of drawing."""
    seed: Annotated[int, Field(ge=0, lt=2**64)] = 0
    """Key of the random draws."""
    stop: tuple[str, ...] = ()
    """Texts at which to stop; none of them is part of the result."""

    @model_validator(mode="after")
    def a_beam_draws_nothing(self) -> "GenerationConfig":
        """Refuse settings of random draws for a search."""
        drawing = {"temperature", "top_k", "top_p", "seed"} & self.model_fields_set
        if self.beam is not None and drawing:
            raise ValueError(
                f"A beam draws nothing at random, so {', '.join(sorted(drawing))} has no effect. Leave it out."
            )
        return self


def generate_tokens(model: Stepwise[Any], prompt: Sequence[int], config: GenerationConfig) -> Iterator[int]:
    """Yield up to `config.tokens` tokens after a prompt of at least one token."""
    if config.beam is not None:
        yield from _most_probable(model, prompt, config)
        return
    sampler = TokenSampler(config.temperature or 1.0, 1 if config.temperature == 0 else config.top_k, config.top_p)
    uniform = uniform_numbers(seed=config.seed, sentence=0, draw=0, count=config.tokens)
    read, forbidden = list(prompt), list(model.tokens.never_generated)
    left, newest, state = 0, model.tokens.start, None
    for number in uniform:
        if left == 0:  # at the beginning, and wherever the context is full
            read = _that_fits(model, read)
            left, newest = model.longest_target(len(read)) or len(uniform), model.tokens.start
            state = model.start(np.array([read], dtype=np.int64))
        log_probabilities_BWV = model.step(state, np.array([[newest]], dtype=np.int64))
        log_probabilities_BWV[..., forbidden] = -np.inf
        newest = int(sampler.draw(log_probabilities_BWV[0], np.array([number]))[0])
        read.append(newest)
        left -= 1
        yield newest


def _that_fits(model: Stepwise[Any], read: Sequence[int]) -> list[int]:
    """Return the last tokens that leave room for as many again; all of them if there is no bound."""
    longest = model.longest_target(1)
    return list(read) if longest is None or len(read) <= longest // 2 else list(read[-max(1, longest // 2) :])


def _most_probable(model: Stepwise[Any], prompt: Sequence[int], config: GenerationConfig) -> Iterator[int]:
    read = _that_fits(model, prompt)
    longest = min(config.tokens, model.longest_target(len(read)) or config.tokens)
    asked = DecodingConfig(beam=config.beam or 1, maximum_length=longest, length_penalty=0.0)
    yield from search(model, np.array([read], dtype=np.int64), asked)[0][0].tokens


def encode_text(tokenizer: Tokenizer, text: str) -> list[int]:
    """Return the tokens of a text from its beginning: the start token, and an end token for each line break.

    A tokenizer that has line breaks keeps them.
    """
    if tokenizer.has_line_breaks:
        return [tokenizer.special.start, *tokenizer.encode(text)]
    first, *rest = text.split("\n")
    ids = [tokenizer.special.start, *tokenizer.encode(first)]
    for line in rest:
        ids += [tokenizer.special.end, *tokenizer.encode(line)]
    return ids


def decode_text(tokenizer: Tokenizer, ids: Sequence[int]) -> str:
    """Return the text of tokens, with a line break for each end token."""
    lines: list[list[int]] = [[]]
    for token in ids:
        if token == tokenizer.special.end:
            lines.append([])
        else:
            lines[-1].append(token)
    return "\n".join(map(tokenizer.decode, lines))


def text_pieces(
    tokenizer: Tokenizer, prompt: Sequence[int], tokens: Iterator[int], stop: Sequence[str]
) -> Iterator[str]:
    """Yield the text that tokens add to a prompt as they come, up to the first stop text.

    A piece that may be the beginning of a stop text, or of a character, waits for the next token. The end token is a
    line break, or the end if the tokenizer has line breaks of its own.
    """
    line_start = max((place + 1 for place, token in enumerate(prompt) if token == tokenizer.special.end), default=1)
    line, written = list(prompt[line_start:]), ""
    shown = tokenizer.decode(line)
    for token in tokens:
        if token == tokenizer.special.end and tokenizer.has_line_breaks:
            break
        if token == tokenizer.special.end:
            written, line, shown = written + tokenizer.decode(line)[len(shown) :] + "\n", [], ""
        else:
            line.append(token)
            now = tokenizer.decode(line)
            if now.endswith("\ufffd"):  # the first bytes of a character
                continue
            written, shown = written + now[len(shown) :], now
        found = [place for text in stop if (place := written.find(text)) >= 0]
        if found:
            yield written[: min(found)]
            return
        kept = _length_of_a_beginning(written, stop)
        if len(written) > kept:
            yield written[: len(written) - kept]
            written = written[len(written) - kept :]
    if written:
        yield written


def _length_of_a_beginning(text: str, stop: Sequence[str]) -> int:
    """Return how many characters at the end of `text` could begin a stop text."""
    lengths = [n for one in stop for n in range(1, len(one)) if text.endswith(one[:n])]
    return max(lengths, default=0)
