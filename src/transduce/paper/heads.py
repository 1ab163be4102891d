"""Figures 3 to 5 by measurement: which encoder heads follow a relation of the sentence, found by ranking all of them.

The paper shows heads that its authors chose. Here every head of the bundled model's
encoder is scored by the mean weight that it gives from a word to a word related to it. The best head is chosen on half
of the links, and its score on the other half is reported.

    long distance   a verb to its object, three words or more away                    (Figure 3)
    anaphora        he, she, it or they to the only earlier subject that agrees       (Figure 4)
    structure       a subject to the verb of its clause, with another clause beside   (Figure 5)

`ablation` removes each head in turn: its part of W_O is set to zero, and the loss per token is measured again.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice

import torch
from torch import Tensor

from transduce.demo.corpus import Constituent
from transduce.model.transformer import Transformer
from transduce.networks.attention_sublayer import record_attention, sublayers_by_kind, without_head
from transduce.networks.log_probabilities import token_log_probabilities
from transduce.paper.finding import Finding, StudyContext
from transduce.paper.labelled_model import LabelledSentence, bundled_model, labelled_sentences, network_of

Link = tuple[Constituent, Constituent]
PRONOUNS = frozenset({"he", "she", "it", "they"})
OBJECTS = ("accusative", "dative", "oblique")
FAR, SENTENCES = 3, 300


def long_distance(sentence: LabelledSentence, words: Sequence[str]) -> Iterator[Link]:
    """Yield each verb with an object of its clause that is at least three words away."""
    for verb in _with_role(sentence, "verb"):
        for other in sentence.constituents:
            if other.role in OBJECTS and other.clause == verb.clause and _distance(verb, other) >= FAR:
                yield verb, other


def anaphora(sentence: LabelledSentence, words: Sequence[str]) -> Iterator[Link]:
    """Yield each personal pronoun with the only earlier subject that agrees with it in number and gender."""
    for pronoun in _with_role(sentence, "subject"):
        if not pronoun.english or words[pronoun.english[0]].lower() not in PRONOUNS:
            continue
        earlier = [
            other
            for other in _with_role(sentence, "subject")
            if other.english
            and other.english[0] < pronoun.english[0]
            and words[other.english[0]].lower() not in PRONOUNS
            and (other.number, other.gender) == (pronoun.number, pronoun.gender)
        ]
        if len(earlier) == 1:
            yield pronoun, earlier[0]


def structure(sentence: LabelledSentence, words: Sequence[str]) -> Iterator[Link]:
    """Yield each subject with the verb of its clause, in sentences that have another clause."""
    verbs = list(_with_role(sentence, "verb"))
    if len({verb.clause for verb in verbs}) > 1:
        for subject in _with_role(sentence, "subject"):
            yield from ((subject, verb) for verb in verbs if verb.clause == subject.clause)


RELATIONS: dict[str, Callable[[LabelledSentence, Sequence[str]], Iterator[Link]]] = {
    "Figure 3, long distance": long_distance,
    "Figure 4, anaphora": anaphora,
    "Figure 5, structure": structure,
}


def _with_role(sentence: LabelledSentence, role: str) -> Iterator[Constituent]:
    return (one for one in sentence.constituents if one.role == role)


def _distance(one: Constituent, other: Constituent) -> int:
    return min((abs(a - b) for a in one.english for b in other.english), default=0)


def link_weights(network: Transformer, sentence: LabelledSentence, links: Sequence[Link]) -> Iterator[Tensor]:
    """Yield for each link the weight that each head gives it, shape (L, H + 1); the last column is the even share."""
    weights_LHQK = record_attention(network, sentence.source, sentence.target)["encoder"].weights_LHQK
    even_L1 = weights_LHQK.new_ones(len(weights_LHQK), 1) / weights_LHQK.size(-1)
    for start, end in links:
        queries, keys = sentence.tokens(start), sentence.tokens(end)
        if queries and keys:
            weights_LH = weights_LHQK[:, :, queries][..., keys].sum(-1).mean(-1)
            yield torch.cat([weights_LH, even_L1 * len(keys)], dim=1)


def ranked_heads(relation: str, context: StudyContext) -> Finding:
    """Return the mean weight that the best head gives a relation, and which head it is."""
    model = bundled_model()
    network = network_of(model)
    found: list[Tensor] = []
    for sentence in labelled_sentences(model):
        links = list(RELATIONS[relation](sentence, sentence.words))
        if links:
            found.extend(link_weights(network, sentence, links))
    chosen_on_LH, tested_on_LH = torch.stack(found[::2]).mean(0), torch.stack(found[1::2]).mean(0)
    best = int(chosen_on_LH[:, :-1].argmax())
    layer, head = divmod(best, chosen_on_LH.size(1) - 1)
    others = tested_on_LH[:, :-1].flatten().tolist()
    score = others.pop(best)
    also = {
        "layer": layer + 1,
        "head": head + 1,
        "even attention": float(tested_on_LH[0, -1]),
        "mean of the other heads": sum(others) / len(others),
        "links": len(found),
    }
    return Finding(score, "mean weight of the best head on the links it was not chosen on", also)


@torch.no_grad()
def loss_per_token(network: Transformer, sentences: Sequence[LabelledSentence]) -> float:
    """Return the mean negative log-likelihood of the target tokens."""
    total, tokens = 0.0, 0
    for sentence in sentences:
        target_1T = torch.tensor([sentence.target])
        hidden_1TD = network(torch.tensor([sentence.source]), target_1T)
        total -= float(token_log_probabilities(hidden_1TD, network.output, target_1T).sum())
        tokens += len(sentence.target)
    return total / tokens


@torch.no_grad()
def ablation(kind: str, context: StudyContext) -> Finding:
    """Return the greatest rise of the loss when one head of a kind is removed, and how many rises are small."""
    model = bundled_model()
    network, sentences = network_of(model), list(islice(labelled_sentences(model), SENTENCES))
    whole, rises = loss_per_token(network, sentences), []
    for sublayer in sublayers_by_kind(network)[kind]:
        for head in range(network.config.heads):
            with without_head(sublayer, head):
                rises.append(loss_per_token(network, sentences) - whole)
    also = {
        "least rise": min(rises),
        "heads": len(rises),
        "heads that raise the loss by less than 10 %": sum(rise < 0.1 * whole for rise in rises),
        "loss with all heads": whole,
    }
    curve = [[place + 1, rise] for place, rise in enumerate(sorted(rises, reverse=True))]
    return Finding(max(rises), "greatest rise of the loss per token; curve: heads in order", also, curve)
