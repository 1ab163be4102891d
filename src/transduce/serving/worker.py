"""The child process: loads the models and computes rounds until its input closes.

`Child` starts it as `python -m transduce.serving.worker`. The messages, each request followed by its answer:

    {"models": {name: folder}, "threads": n, "precision": p, "glossary": file, "terms": mode}     the first request
        {"ready": {name: description}, "resident_bytes": n}, or {"refused": reason}
    {"round": n, "task": name, "model": name, "options": {...}, "items": [...]}                   every later request
        {"round": n, "results": [...], "resident_bytes": n}

A result is {"value": …} or {"error": …, "is_curable": …}: the user can fix a curable error, the others are bugs. If a
round of several items fails, each item is computed by itself, so that one bad item fails alone.
"""

import dataclasses
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from transduce.errors import ConfigError, TransduceError
from transduce.machine import available_cores, give_back_freed_memory, keep_freed_memory, peak_memory
from transduce.networks.cost import parameter_count
from transduce.serving.frames import read_frame, write_frame
from transduce.serving.logs import source_lines
from transduce.text.tokenizer_files import SOURCE_TOKENIZER, TOKENIZER
from transduce.translator import Glossary, Translator, read_glossary
from transduce.translator.several_targets import toward
from transduce.translator.terminology import Mode

Tasks = dict[str, Callable[[Translator, list[Any], dict[str, Any]], list[dict[str, Any]]]]

_TRIAL_TEXT = "a"


def serve(inlet: BinaryIO, outlet: BinaryIO) -> None:
    """Answer requests until the input closes."""
    settings = read_frame(inlet)
    if settings is None:
        return
    keep_freed_memory()
    threads = settings["threads"] or available_cores()
    try:
        translators = {
            name: Translator.load(folder, threads=threads, precision=settings["precision"])
            for name, folder in settings["models"].items()
        }
        give_back_freed_memory()
        translators = {key: own for name, one in translators.items() for key, own in by_target(name, one)}
        tasks = tasks_with(glossary_for(translators.values(), settings["glossary"], mode=settings["terms"]))
        for translator in translators.values():
            translator.translate(_TRIAL_TEXT, beam=1, alternatives=1, maximum_length=4)
    except TransduceError as error:
        write_frame(outlet, {"refused": str(error)})
        return
    described = {name: describe(translator) for name, translator in translators.items()}
    write_frame(outlet, {"ready": described, "resident_bytes": resident_bytes()})
    while (request := read_frame(inlet)) is not None:
        results = compute_round(translators[request["model"]], request, tasks=tasks)
        write_frame(outlet, {"round": request["round"], "results": results, "resident_bytes": resident_bytes()})


def by_target(name: str, translator: Translator) -> Iterator[tuple[str, Translator]]:
    """Yield a translator for each language that a model translates to, with the name under which it is served."""
    if translator.languages.target is not None or not translator.models[0].description.targets:
        yield name, translator
    for target in translator.models[0].description.targets:
        yield f"{name}-{target}", toward(translator, target)


def glossary_for(translators: Iterable[Translator], file: str | None, *, mode: Mode) -> Glossary:
    """Read the glossary for all translations; refuse models of different pairs of languages."""
    if file is None:
        return Glossary(())
    pairs = {f"{own.languages.source}-{own.languages.target}" for own in translators}
    if len(pairs) > 1:
        raise ConfigError(
            f"A glossary holds terms of one pair of languages, but these models are for {' and '.join(sorted(pairs))}. "
            "Run one server for each pair."
        )
    return read_glossary(Path(file), mode=mode)


def describe(translator: Translator) -> dict[str, Any]:
    """Return what the server needs to know about a model."""
    model = translator.models[0]
    return {
        "source": translator.languages.source,
        "target": translator.languages.target,
        "is_calibrated": translator.calibration is not None and translator.calibration.confidence is not None,
        "longest_sentence": translator.longest_sentence,
        "parameters": parameter_count(model.description.architecture),
        "tokenizer": str(model.folder / TOKENIZER),
        "source_tokenizer": None if model.tokenizers.is_shared else str(model.folder / SOURCE_TOKENIZER),
        "source_end": model.tokenizers.source_end,
        "beam": translator.decoding.beam,
        "extra_length": translator.decoding.extra_length,
    }


def compute_round(translator: Translator, request: dict[str, Any], *, tasks: Tasks) -> list[dict[str, Any]]:
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
    translator: Translator, items: list[list[Any]], options: dict[str, Any], *, glossary: Glossary
) -> list[dict[str, Any]]:
    """Return the attention report, or with `is_page` the page, of each text and its translation.

    The translation is given as a text or as token ids, or it is None and the search finds it.
    """
    reports = [translator.attention(text, target=target, glossary=glossary) for text, target in items]
    if options.get("is_page"):
        return [{"page": report.to_html()} for report in reports]
    return [report.to_dictionary() for report in reports]


def numbers(translator: Translator, items: list[dict[str, Any]], options: dict[str, Any]) -> list[dict[str, Any]]:
    """Return q, k and v of one head for each pair of token ids."""
    return [translator.head_numbers(**item).model_dump(mode="json") for item in items]


def tasks_with(glossary: Glossary) -> Tasks:
    """Return the functions that compute a round, by the name of their task; translations use this glossary."""
    return {
        "translate": partial(translate, glossary=glossary),
        "likelihood": likelihood,
        "attention": partial(attention, glossary=glossary),
        "numbers": numbers,
    }


def resident_bytes() -> int | None:
    """Return the resident memory of this process; where the system does not report it, its peak, or None."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else None
    except (OSError, ValueError, IndexError):
        return peak_memory()


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
