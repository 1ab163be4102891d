"""Enforcement of a glossary: the constraints of its terms, and a second search for sentences that lack a term.

Every sentence is first searched without the glossary. If terms are enforced and an output lacks one, a constrained
search finds outputs that have all terms. So a glossary does not change a translation that has the terms already, and
costs no time there. Outputs without a term are kept only if the constrained search finds none within the length limit.

A term is written as in the glossary: with a word mark, or without one after punctuation and placeholders. At the
beginning of a sentence its first letter may be a capital.
"""

from collections.abc import Iterable, Sequence

from transduce.decoding.config import DecodingConfig
from transduce.decoding.constraints import Constraint, Constraints, Form, TermPlace
from transduce.decoding.hypothesis import Hypothesis
from transduce.errors import ConfigError
from transduce.text.normalization import WORD_MARK
from transduce.text.tokenizer import Tokenizer
from transduce.text.word_edges import needs_edge
from transduce.translator.consensus import all_hypotheses, by_agreement
from transduce.translator.searching import Searcher, Sentence
from transduce.translator.terminology import Glossary, count_terms


def refuse_drawn_terms(config: DecodingConfig, glossary: Glossary) -> None:
    """Refuse to enforce terms on random samples."""
    if config.sample and glossary.terms and glossary.mode == "enforced":
        raise ConfigError("Terms are enforced by beam search, not in samples. Leave out sample, or prefer the terms.")


def search_with_terms(
    sentences: Sequence[Sentence],
    config: DecodingConfig,
    *,
    glossary: Glossary,
    searcher: Searcher,
    tokenizer: Tokenizer,
) -> list[list[Hypothesis]]:
    """Return the outputs of each sentence, best first, with its terms enforced or preferred."""
    if not glossary.terms:
        return searcher.search(sentences, config)
    texts = [sentence.protected.text for sentence in sentences]
    if glossary.mode == "preferred":
        found = searcher.search(sentences, all_hypotheses(config))
        return [
            glossary.prefer(own, text, decode=tokenizer.decode)[: config.alternatives]
            for text, own in zip(texts, found, strict=True)
        ]
    found = searcher.search(sentences, config)
    wanted = [glossary.wanted(text) for text in texts]
    lacking = [
        n
        for n, sentence in enumerate(sentences)
        if not all(_has_all(sentence, wanted[n], own, tokenizer) for own in found[n])
    ]
    constraints = [
        Constraints(
            [constraint_of(term, tokenizer) for term in wanted[n]],
            tokenizer.word_edges.without(tokenizer.symbols[len(sentences[n].protected.originals) :]),
        )
        for n in lacking
    ]
    again = searcher.search_constrained(
        [sentences[n] for n in lacking],
        all_hypotheses(config) if config.consensus else config,
        constraints=constraints,
    )
    for n, constrained in zip(lacking, again, strict=True):
        kept = [own for own in found[n] if _has_all(sentences[n], wanted[n], own, tokenizer)]
        together = {own.tokens: own for own in (*constrained, *kept)}.values()
        ranked = _ranked(together, config, first=found[n][0], tokenizer=tokenizer)
        found[n] = ranked[: config.alternatives] or found[n]
    return found


def _has_all(sentence: Sentence, terms: Sequence[str], output: Hypothesis, tokenizer: Tokenizer) -> bool:
    if not terms:
        return True
    return count_terms(terms, sentence.without_foreign_symbols(tokenizer.decode(output.tokens))) == len(terms)


def _ranked(
    outputs: Iterable[Hypothesis], config: DecodingConfig, *, first: Hypothesis, tokenizer: Tokenizer
) -> list[Hypothesis]:
    """Return the outputs, best first; the best output without the glossary stays first if it is among them."""
    ranked = sorted(outputs, key=lambda own: -own.score)
    if config.consensus:
        ranked = by_agreement(ranked, decode=tokenizer.decode)
    return sorted(ranked, key=lambda own: own is not first)


def constraint_of(term: str, tokenizer: Tokenizer) -> Constraint:
    """Return the constraint that a term puts on the tokens of an output."""
    place = TermPlace.EDGE if needs_edge(term[0]) else TermPlace.INSIDE
    capital = term[0].upper() + term[1:]
    first = tuple(tokenizer.encode(term))
    has_mark = tokenizer.written(first[0]).startswith(WORD_MARK.encode())
    forms = {
        (first, TermPlace.INSIDE if has_mark else place),
        (tuple(tokenizer.encode_inside(term)), place),
        *([(tuple(tokenizer.encode(capital)), TermPlace.START)] if capital != term else []),
    }
    return Constraint(tuple(Form(*form, needs_edge_after=needs_edge(term[-1])) for form in sorted(forms)))
