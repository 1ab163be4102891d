"""The child process: loads the models and computes rounds until its input closes.

`Child` starts it as `python -m transduce.serving.worker`. The messages, each request followed by its answer:

    {"models": {name: folder}, "load": [name], "threads": n, "precision": p, "memory_limit": MB,
     "glossary": file, "terms": mode}                                                the first request
        {"ready": {name: description}, "loaded": [name], "resident_bytes": n}, or {"refused": reason}
    {"round": n, "task": name, "model": name, "options": {...}, "items": [...]}      every later request
        {"round": n, "results": [...], "loaded": [name], "resident_bytes": n}

The models to load are described in `ready`; with a limit of memory not all of them stay loaded. A result is
{"value": …}, {"unavailable": …} if the model cannot be loaded now, or {"error": …, "is_curable": …}: the user can fix a
curable error, the others are bugs. If a round of several items fails, each item is computed by itself, so that one bad
item fails alone.
"""

import dataclasses
import os
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from transduce.errors import ConfigError, TransduceError
from transduce.learning.lesson import lesson
from transduce.machine import available_cores, keep_freed_memory, resident_bytes
from transduce.networks.cost import parameter_count
from transduce.serving.frames import read_frame, write_frame
from transduce.serving.loaded_models import LoadedModels, kind_of, load, try_out
from transduce.serving.logs import source_lines
from transduce.serving.open_texts import OpenTexts
from transduce.text.tokenizer_files import SOURCE_TOKENIZER, TOKENIZER
from transduce.translator import Glossary, Translator, read_glossary
from transduce.translator.model_decoding import decoding_of
from transduce.translator.tag_placing import attention_of
from transduce.translator.terminology import Mode

Tasks = dict[str, Callable[[Any, list[Any], dict[str, Any]], list[dict[str, Any]]]]

if TYPE_CHECKING:
    from transduce.serving.loaded_models import Model


def serve(inlet: BinaryIO, outlet: BinaryIO) -> None:
    """Answer requests until the input closes."""
    settings = read_frame(inlet)
    if settings is None:
        return
    keep_freed_memory()
    threads = settings["threads"] or available_cores()
    loader = partial(load, threads=threads, precision=settings["precision"])
    models = LoadedModels(
        settings["models"], loader, megabytes=settings["memory_limit"], targets=settings.get("targets", {})
    )
    described = {}
    try:
        for name in settings["load"]:
            described[name] = describe(models[name])
            models.require_room(name)
        tasks = tasks_with(glossary_for(described, settings["glossary"], mode=settings["terms"]))
    except TransduceError as error:
        write_frame(outlet, {"refused": str(error)})
        return
    write_frame(outlet, {"ready": described, "loaded": models.names, "resident_bytes": resident_bytes()})
    while (request := read_frame(inlet)) is not None:
        try:
            results = compute_round(models[request["model"]], request, tasks=tasks)
        except TransduceError as error:
            results = [{"unavailable": str(error)}] * len(request["items"])
        models.drop_surplus()
        answer = {"results": results, "loaded": models.names, "resident_bytes": resident_bytes()}
        write_frame(outlet, {"round": request["round"], **answer})


def glossary_for(described: Mapping[str, Mapping[str, Any]], file: str | None, *, mode: Mode) -> Glossary:
    """Read the glossary for all translations; refuse models of different pairs of languages."""
    if file is None:
        return Glossary(())
    pairs = {f"{own['source']}-{own['target']}" for own in described.values() if own["kind"] == "translation"}
    if len(pairs) > 1:
        raise ConfigError(
            f"A glossary holds terms of one pair of languages, but these models are for {' and '.join(sorted(pairs))}. "
            "Run one server for each pair."
        )
    return read_glossary(Path(file), mode=mode)


def describe(translator: "Model") -> dict[str, Any]:
    """Return what the server needs to know about a model."""
    model = translator.models[0] if isinstance(translator, Translator) else translator.model
    calibration = translator.calibration if isinstance(translator, Translator) else None
    decoding = decoding_of(model)
    return {
        "kind": kind_of(translator),
        "source": translator.languages.source,
        "target": translator.languages.target,
        "aligns_tags": isinstance(translator, Translator) and attention_of(translator.stepper) is not None,
        "is_calibrated": calibration is not None and calibration.confidence is not None,
        "longest_sentence": translator.longest_sentence,
        "parameters": parameter_count(model.description.architecture),
        "tokenizer": str(model.folder / TOKENIZER),
        "source_tokenizer": None if model.tokenizers.is_shared else str(model.folder / SOURCE_TOKENIZER),
        "source_end": model.tokenizers.source_end,
        "beam": decoding.beam,
        "extra_length": decoding.extra_length,
    }


def compute_round(translator: "Model", request: dict[str, Any], *, tasks: Tasks) -> list[dict[str, Any]]:
    """Return one result for each item of a round; if the round fails, compute each item by itself."""
    task = tasks[request["task"]]
    items, options = request["items"], request["options"]
    try:
        return [{"value": value} for value in task(translator, items, options)]
    except Exception as fault:
        if len(items) > 1:
            return [compute_round(translator, {**request, "items": [item]}, tasks=tasks)[0] for item in items]
        return [_failure(fault)]


def _failure(fault: Exception) -> dict[str, Any]:
    if isinstance(fault, TransduceError):
        return {"error": str(fault), "is_curable": True}
    # A bug in this package: log its place in the code, but not its message, which could quote the user's text.
    return {"error": f"{type(fault).__name__} at {' < '.join(source_lines(fault))}", "is_curable": False}


def trial(model: "Model", items: list[str], options: dict[str, Any]) -> list[dict[str, Any]]:
    """Let a model compute something small for each text."""
    for text in items:
        try_out(model, text)
    return [{} for _ in items]


def translate(
    translator: Translator, items: list[str], options: dict[str, Any], *, glossary: Glossary
) -> list[dict[str, Any]]:
    """Translate texts with the same options in shared batches."""
    translations = translator.translate_all(items, translator.configure(**options), glossary=glossary)
    found = [dataclasses.asdict(translation) for translation in translations]
    return [{name: value for name, value in own.items() if name != "source"} for own in found]  # the server has it


def likelihood(translator: Translator, items: list[list[str]], options: dict[str, Any]) -> list[dict[str, Any]]:
    """Return log p(target | source) of each pair, in total and token by token."""
    found = translator.likelihood([(source, target) for source, target in items])
    return [{"log_probability": own.log_probability, **dataclasses.asdict(own)} for own in found]


def attention(
    model: "Model", items: list[list[Any]], options: dict[str, Any], *, glossary: Glossary
) -> list[dict[str, Any]]:
    """Return the attention report, or with `is_page` the page, of each text and its translation.

    The translation is given as a text or as token ids, or it is None and the search finds it. A text encoder takes a
    second text, or None, in its place.
    """
    if isinstance(model, Translator):
        reports = [model.attention(text, target=target, glossary=glossary) for text, target in items]
    else:
        reports = [model.attention(text, second=second) for text, second in items]
    if options.get("is_page"):
        return [{"page": report.to_html()} for report in reports]
    return [report.to_dictionary() for report in reports]


def numbers(model: "Model", items: list[dict[str, Any]], options: dict[str, Any]) -> list[dict[str, Any]]:
    """Return q, k and v of one head for each pair of token ids."""
    return [model.head_numbers(**item).model_dump(mode="json") for item in items]


def lessons(translator: Translator, items: list[list[Any]], options: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what the learning page shows of each text."""
    return [lesson(translator, text) for text, _ in items]


def tasks_with(glossary: Glossary) -> Tasks:
    """Return the functions that compute a round, by the name of their task; translations use this glossary."""
    return {
        "trial": trial,
        "translate": partial(translate, glossary=glossary),
        "generate": OpenTexts().portions,
        "likelihood": likelihood,
        "attention": partial(attention, glossary=glossary),
        "numbers": numbers,
        "lesson": lessons,
    }


def main() -> None:
    """Answer requests from stdin on stdout; redirect everything else that is printed to stderr."""
    import signal

    # A supervisor such as systemd signals the child too. It must not stop before the server closes its input.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    outlet = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    serve(sys.stdin.buffer, outlet)


if __name__ == "__main__":
    main()
