"""A model that translates into several languages: a tag before each source says into which.

The languages and their tags are in config.json (`targets`). A translator toward one of them shares the weights.
"""

import copy
from dataclasses import replace

from transduce.errors import ConfigError
from transduce.model_directory import Languages
from transduce.translator.translator import Translator


def toward(translator: Translator, target: str | None, *, is_strict: bool = True) -> Translator:
    """Return a translator into one language of a model that has several; the model's own if that is the target.

    Raises ConfigError for a language that the model does not have, or if it needs one and none is given; if not
    `is_strict`, only for models with several.
    """
    own, targets = translator.languages, translator.models[0].description.targets
    needs_one = own.target is None and bool(targets)
    if target in (own.target, None) and not needs_one:
        return translator
    if target is None or target not in targets:
        if not targets and not is_strict:
            return translator
        known = ", ".join(filter(None, (own.target, *targets))) or "one language"
        asked = "" if target is None else f", not to {target}"
        raise ConfigError(f"This model translates to {known}{asked}. Choose one of its languages with --to.")
    found = copy.copy(translator)
    for cached in ("_cutter", "fingerprint"):  # these depend on the tag
        found.__dict__.pop(cached, None)
    languages = Languages(source=own.source, target=target)
    found.models = tuple(
        replace(model, description=model.description.model_copy(update={"languages": languages}))
        for model in translator.models
    )
    found.tokenizers = replace(translator.tokenizers, source_tag=targets[target])
    return found
