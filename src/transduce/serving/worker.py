"""The child: loads the models and computes what it is asked, one round after the other, until its input closes.

    {"models": {name: folder}, "threads": n, "precision": p, "glossary": file, "terms": mode}   first
                                                                               answered by {"ready": {...}}
    {"round": n, "task": t, "model": name, "options": {...}, "items": [...]}   answered by {"round": n, "results": …}

A result is {"value": …} or {"error": …, "is_curable": …}. Where a round of several items fails, its items are computed
one by one, so that whoever asked for the impossible fails alone. Started by `Child` as
`python -m transduce.serving.worker`.
"""

import dataclasses
import os
import sys
import traceback
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from transduce.architectures import parameter_count
from transduce.errors import ConfigError, TransduceError
from transduce.serving.document_tasks import fill, find_gaps
from transduce.serving.frames import read_frame, write_frame
from transduce.text.tokenizer_files import SOURCE_TOKENIZER, TOKENIZER
from transduce.translator import Glossary, Translation, Translator, read_glossary
from transduce.translator.terminology import Mode

Tasks = dict[str, Callable[[Translator, list[Any], dict[str, Any]], list[dict[str, Any]]]]

_TRIAL = "a"


def serve(inlet: BinaryIO, outlet: BinaryIO) -> None:
    """Answer frames until the input closes."""
    order = read_frame(inlet)
    if order is None:
        return
    try:
        translators = {
            name: Translator.load(folder, threads=order["threads"], precision=order["precision"])
            for name, folder in order["models"].items()
        }
        tasks = tasks_with(glossary_for(translators.values(), order["glossary"], mode=order["terms"]))
        for translator in translators.values():
            translator.translate(_TRIAL, beam=1, alternatives=1, maximum_length=4)
    except TransduceError as error:
        write_frame(outlet, {"refused": str(error)})
        return
    described = {name: describe(translator) for name, translator in translators.items()}
    write_frame(outlet, {"ready": described, "resident_bytes": resident_bytes()})
    while (request := read_frame(inlet)) is not None:
        results = compute_round(translators[request["model"]], request, tasks=tasks)
        write_frame(outlet, {"round": request["round"], "results": results, "resident_bytes": resident_bytes()})


def glossary_for(translators: Iterable[Translator], file: str | None, *, mode: Mode) -> Glossary:
    """Read the terms that every translation is to have: they are of one pair of languages, as the models must be."""
    if file is None:
        return Glossary(())
    pairs = {f"{own.languages.source}-{own.languages.target}" for own in translators}
    if len(pairs) > 1:
        raise ConfigError(
            f"A glossary is of one pair of languages, but these models are of {' and '.join(sorted(pairs))}. "
            "Serve each pair by itself."
        )
    return read_glossary(Path(file), mode=mode)


def describe(translator: Translator) -> dict[str, Any]:
    """Return what the server tells about a model."""
    model = translator.models[0]
    return {
        "source": translator.languages.source,
        "target": translator.languages.target,
        "longest_sentence": translator.longest_sentence,
        "parameters": parameter_count(model.description.architecture),
        "tokenizer": str(model.folder / TOKENIZER),
        "source_tokenizer": None if model.tokenizers.is_shared else str(model.folder / SOURCE_TOKENIZER),
        "source_end": model.tokenizers.source_end,
        "beam": translator.decoding.beam,
        "extra_length": translator.decoding.extra_length,
        "threads": translator.compute.threads,
        "precision": translator.precision,
    }


def compute_round(translator: Translator, request: dict[str, Any], *, tasks: Tasks) -> list[dict[str, Any]]:
    """Return one result for each item of a round; where they fail together, each gets its own chance."""
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
    # Our bug. Its place in the code goes to the log; its message could hold the text and goes nowhere.
    places = [f"{Path(frame.filename).name}:{frame.lineno}" for frame in traceback.extract_tb(fault.__traceback__)]
    return {"error": f"{type(fault).__name__} at {' < '.join(reversed(places))}", "is_curable": False}


def translate(
    translator: Translator, items: list[str], options: dict[str, Any], *, glossary: Glossary
) -> list[dict[str, Any]]:
    """Translate texts under one set of options, in shared batches."""
    config = translator.configure(**options)
    return [_plain(translation) for translation in translator.translate_all(items, config, glossary=glossary)]


def _plain(translation: Translation) -> dict[str, Any]:
    return {
        "alternatives": [dataclasses.asdict(alternative) for alternative in translation.alternatives],
        "missing": list(translation.missing),
        "surplus": list(translation.surplus),
        "refusal": translation.refusal,
    }


def likelihood(translator: Translator, items: list[list[str]], options: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the model's log-probability of each pair's target, token by token."""
    found = translator.likelihood([(source, target) for source, target in items])
    return [
        {"log_probability": own.log_probability, "tokens": own.tokens, "log_probabilities": own.log_probabilities}
        for own in found
    ]


def attention(
    translator: Translator, items: list[list[str | None]], options: dict[str, Any], *, glossary: Glossary
) -> list[dict[str, Any]]:
    """Return what every head did, for each text and the translation given or found; as a page if so asked."""
    reports = [translator.attention(str(text), target=target, glossary=glossary) for text, target in items]
    if options.get("is_page"):
        return [{"page": report.to_html()} for report in reports]
    return [report.to_dictionary() for report in reports]


def numbers(translator: Translator, items: list[dict[str, Any]], options: dict[str, Any]) -> list[dict[str, Any]]:
    """Return q, k and v of one head for each pair of token ids."""
    return [translator.head_numbers(**item).to_entry().model_dump(mode="json") for item in items]


def tasks_with(glossary: Glossary) -> Tasks:
    """Return what can be asked, by name; whatever is translated is translated with these terms."""
    return {
        "translate": partial(translate, glossary=glossary),
        "likelihood": likelihood,
        "attention": partial(attention, glossary=glossary),
        "numbers": numbers,
        "gaps": find_gaps,
        "fill": fill,
    }


def resident_bytes() -> int | None:
    """Return the memory this process occupies, or at worst its peak; None where the system does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else None
    except (OSError, ValueError, IndexError):
        pass
    if sys.platform == "win32":
        return None
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def main() -> None:
    """Talk over stdin and what was stdout; from here on, whatever prints does so on stderr."""
    import signal

    # Supervisors signal whole groups; the server ends its child itself, by closing the input, when it has finished.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    outlet = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    serve(sys.stdin.buffer, outlet)


if __name__ == "__main__":
    main()
