"""What a language model does for a translator: it continues a prompt, and gives the probability of each token."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypedDict, Unpack

from pydantic import ValidationError

from transduce.architectures import reads_text_alone
from transduce.decoding.generation import GenerationConfig, encode_text, generate_tokens, text_pieces
from transduce.errors import ConfigError, ModelError
from transduce.model_directory import ModelDirectory
from transduce.networks.stepwise import Stepwise
from transduce.text.tokenizer import Tokenizer

ENDS = {"line": "\n", "document": "\n\n"}
"""The text at which a text of each `data.unit` ends; a stream has no end."""


class GenerationOptions(TypedDict, total=False):
    """The settings of `GenerationConfig`."""

    tokens: int
    temperature: float
    top_k: int | None
    top_p: float
    beam: int | None
    seed: int
    stop: Sequence[str]


def is_language_model(model: ModelDirectory) -> bool:
    """Return whether a model writes text without a source."""
    return reads_text_alone(model.description.architecture)


def require_language_model(model: ModelDirectory, *, wanted: bool) -> None:
    """Raise ModelError for a language model that should translate, or a translation model that should write."""
    if is_language_model(model) and not wanted:
        raise ModelError(f"{model.folder} is a language model, which does not translate. Use it with generate.")
    if wanted and not is_language_model(model):
        raise ModelError(f"{model.folder} translates; it is no language model. Use it with translate.")


def _end_of_text(model: ModelDirectory) -> str | None:
    unit = model.description.training.get("unit")
    return ENDS.get(unit) if isinstance(unit, str) else None


def encoded_texts(model: ModelDirectory, tokenizer: Tokenizer, text: str) -> list[list[int]]:
    """Return the tokens of each text of the model's `data.unit` that `text` holds, each from the start token on."""
    end = _end_of_text(model)
    *whole, rest = text.split(end) if end else [text]
    texts = [*(f"{each}{end}" for each in whole), rest]
    return [encode_text(tokenizer, each) for each in texts if each]


def generation_config(model: ModelDirectory, **options: Unpack[GenerationOptions]) -> GenerationConfig:
    """Return the settings of a generation, which also stops where a text of the model's `data.unit` ends."""
    end = _end_of_text(model)
    try:
        asked = GenerationConfig.model_validate(options)
    except ValidationError as fault:
        first = fault.errors()[0]
        where = ".".join(map(str, first["loc"])) or "generation"
        raise ConfigError(f"{where}: {first['msg'].removeprefix('Value error, ')}") from None
    return asked.model_copy(update={"stop": (*asked.stop, *([end] if end else []))})


def written_after(model: Stepwise[Any], tokenizer: Tokenizer, prompt: str, config: GenerationConfig) -> Iterator[str]:
    """Yield the text that the model adds to a prompt, as its tokens come."""
    ids = encode_text(tokenizer, prompt)
    if tokenizer.has_line_breaks and prompt:  # GPT-2 goes on from a prompt that does not begin with the start token
        ids = ids[1:]
    return text_pieces(tokenizer, ids, generate_tokens(model, ids, config), config.stop)


def each_inside(context: Callable[[], AbstractContextManager[None]], parts: Iterator[str]) -> Iterator[str]:
    """Yield each part, computed inside a context of its own, which ends before the caller's code runs."""
    while True:
        with context():
            part = next(parts, None)
        if part is None:
            return
        yield part


def windows(ids: Sequence[int], *, longest: int | None) -> Iterator[tuple[Sequence[int], Sequence[int]]]:
    """Yield the tokens of a text as labels with the tokens before them, for a model that reads at most `longest`.

    `ids` begins with the start token. Each window after the first begins with half of what the model can read.
    """
    done = 1
    while done < len(ids):
        before = (
            ids[:1] if done == 1 else ids[:done] if longest is None else ids[max(0, done - max(1, longest // 2)) : done]
        )
        end = len(ids) if longest is None else done + longest - len(before) + 1
        yield before, ids[done:end]
        done = end
