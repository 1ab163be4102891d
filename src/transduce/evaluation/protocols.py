"""Four protocols that prepare hypotheses and references for scoring. Compare BLEU only within one protocol.

- `detokenised`: plain text, which sacrebleu tokenises. The protocol to report (BLEU, chrF2, TER).
- `paper`: as the authors computed their BLEU (`get_ende_bleu.sh` of their code): Unicode punctuation replaced, the
  Moses tokenizer, compounds split at hyphens, "rich-text" -> "rich ##AT##-##AT## text", cased, unsmoothed.
- `lowercased`: lower-cased, then normalised and tokenised by sacremoses with escapes and without aggressive dashes,
  unsmoothed: the form of published Multi30k scores.
- `parsing`: trees, scored by their brackets (`parsing.py`).

Departure from the authors: their references were already tokenised; here references and hypotheses go through the same
steps. On newstest2013 the result is the same, since its reference has no Unicode punctuation to replace.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version

from sacrebleu.metrics.base import Metric
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER
from sacremoses import MosesPunctNormalizer, MosesTokenizer

from transduce.errors import ConfigError
from transduce.evaluation.parsing import bracket_metrics, linear_line


@dataclass(frozen=True)
class Protocol:
    """The preparation of hypotheses and references, and the metrics that score them."""

    name: str
    prepare: Callable[[str], str]
    """Applied to every line of hypotheses and references before sacrebleu gets it."""
    make_metrics: Callable[[], Mapping[str, Metric]]
    """Makes new sacrebleu metrics, by display name."""
    target_language: str | None
    signature_parts: Mapping[str, str]
    """Parts that replace those of sacrebleu's signature, for the steps that `prepare` does instead of sacrebleu."""

    def prepared(self, lines: Sequence[str]) -> list[str]:
        """Return the lines as input for sacrebleu."""
        return [self.prepare(line) for line in lines]

    def signature(self, from_sacrebleu: str) -> str:
        """Return sacrebleu's signature with the steps of this protocol in it."""
        parts = dict(part.split(":", maxsplit=1) for part in from_sacrebleu.split("|"))
        parts.update(self.signature_parts)
        return "|".join(f"{key}:{value}" for key, value in parts.items())


def detokenised(target_language: str | None = None) -> Protocol:
    """Return the protocol to report: sacrebleu's defaults on plain text.

    The language matters only for Chinese, Japanese and Korean, for which sacrebleu has special tokenizers.
    """
    language = _primary(target_language)

    def metrics() -> Mapping[str, Metric]:
        try:
            bleu = BLEU(trg_lang=language, force=True)
        except RuntimeError as fault:  # the tokenizers of Japanese and Korean are extras of sacrebleu
            raise ConfigError(
                f"BLEU for the language {language} needs a tokenizer that is not installed. "
                f"Run: pip install 'sacrebleu[{language}]'"
            ) from fault
        return {"BLEU": bleu, "chrF2": CHRF(), "TER": TER()}

    return Protocol(
        "detokenised",
        prepare=str,
        make_metrics=metrics,
        target_language=target_language,
        signature_parts={},
    )


def paper(target_language: str | None) -> Protocol:
    """Return the authors' protocol for a target language: cased, tokenised, compound-split, unsmoothed BLEU."""
    language = _required(target_language, protocol="paper")
    tokenizer, normalizer = MosesTokenizer(language), MosesPunctNormalizer(language)

    def prepare(line: str) -> str:
        return split_compounds(_tokenised(tokenizer, normalizer.replace_unicode_punct(line)))

    return _tokenised_protocol("paper", prepare, language=language, tokenization=f"moses-{language}-atat")


def lowercased(target_language: str | None) -> Protocol:
    """Return the protocol of published Multi30k scores: lower-cased, normalised, tokenised, unsmoothed BLEU."""
    language = _required(target_language, protocol="lowercased")
    tokenizer, normalizer = MosesTokenizer(language), MosesPunctNormalizer(language)

    def prepare(line: str) -> str:
        return _tokenised(tokenizer, normalizer.normalize(line.lower()))

    return _tokenised_protocol(
        "lowercased", prepare, language=language, tokenization=f"moses-{language}-norm", case="lc"
    )


def parsing(target_language: str | None = None) -> Protocol:
    """Return the protocol of trees: labelled brackets as EVALB counts them."""
    return Protocol(
        "parsing",
        prepare=linear_line,
        make_metrics=bracket_metrics,
        target_language=target_language,
        signature_parts={},
    )


PROTOCOLS: Mapping[str, Callable[[str | None], Protocol]] = {
    "detokenised": detokenised,
    "paper": paper,
    "lowercased": lowercased,
    "parsing": parsing,
}


def protocol_named(name: str, *, target_language: str | None) -> Protocol:
    """Return the protocol of this name; raise ConfigError with the names if there is none."""
    if name not in PROTOCOLS:
        raise ConfigError(f"There is no protocol {name!r}. There are: {', '.join(PROTOCOLS)}.")
    return PROTOCOLS[name](target_language)


def split_compounds(tokenised: str) -> str:
    """Split tokens at hyphens: "rich-text format" becomes "rich ##AT##-##AT## text format".

    As in the authors' code, a match includes the character after the hyphen, so in "a-b-c" only the first hyphen is
    split.
    """
    return re.sub(r"(\S)-(\S)", r"\1 ##AT##-##AT## \2", tokenised)


def _tokenised_protocol(
    name: str, prepare: Callable[[str], str], *, language: str, tokenization: str, case: str = "mixed"
) -> Protocol:
    def metrics() -> Mapping[str, Metric]:
        return {f"BLEU ({name})": BLEU(tokenize="none", smooth_method="none", force=True)}

    signature = {"case": case, "tok": f"{tokenization}-{version('sacremoses')}"}
    return Protocol(name, prepare=prepare, make_metrics=metrics, target_language=language, signature_parts=signature)


def _tokenised(tokenizer: MosesTokenizer, line: str) -> str:
    return str(tokenizer.tokenize(line, aggressive_dash_splits=False, escape=True, return_str=True))


def _primary(language: str | None) -> str:
    """Return the language without its region: `pt` for `pt-BR`."""
    return (language or "").lower().partition("-")[0]


def _required(language: str | None, *, protocol: str) -> str:
    if not language:
        raise ConfigError(
            f"The protocol {protocol} tokenises by the rules of the target language, which is not known. "
            "Give it, for example --to de."
        )
    return _primary(language)
