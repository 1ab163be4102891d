"""The lesson of a sentence: everything that the learning page shows of it, as plain values for JSON.

    {"report": an attention report with numbers and ablation, "search": a record of beam searches, "reference": a text}

It is computed by the plain float32 network, whatever precision translates otherwise.
"""

from typing import TYPE_CHECKING, Any

from transduce.errors import ConfigError
from transduce.extras import require_torch

if TYPE_CHECKING:
    from transduce.translator import Translator


def lesson(translator: "Translator", text: str, *, reference: str | None = None) -> dict[str, Any]:
    """Return the lesson of one sentence; `reference` is a translation by a person, where one is known."""
    require_torch("A lesson")
    from transduce.inspection.ablation import with_ablation
    from transduce.inspection.search_record import record_searches

    report = translator.attention(text, numbers=True)
    if not report.source.tokens or "cross" not in report.blocks:
        raise ConfigError(
            "The lesson is about a Transformer that translates: encoder, decoder and attention between them. This "
            "model is of another kind; `transduce attention` shows it."
        )
    network, tokenizer = translator.models[0].read_again().network(), translator.tokenizers.target
    return {
        "report": with_ablation(report, network, tokenizer).to_dictionary(),
        "search": record_searches(network, report.source.ids, tokenizer).model_dump(mode="json"),
        "reference": reference,
    }
