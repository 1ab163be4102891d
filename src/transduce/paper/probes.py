"""What dimensions encode: linear probes read number, gender, tense and role from a vector of the encoder.

A probe is a ridge regression onto one-hot labels, fitted on 1,000 labelled sentences of the bundled corpus and tested
on 500 others. It reads the last token of a word. Its accuracy is compared with that on the same network with random
weights, and with the most frequent label. Departure: the paper states no such claim; it hopes for interpretable models.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from transduce.model.transformer import Transformer
from transduce.paper.finding import Finding, StudyContext
from transduce.paper.labelled_model import LabelledSentence, bundled_model, labelled_sentences, network_of
from transduce.torch_networks import new_network

PROPERTIES = ("number", "gender", "tense", "role")
RIDGE = 1.0


@torch.no_grad()
def vectors_by_layer(network: Transformer, source: Sequence[int]) -> list[Tensor]:
    """Return the embeddings with positions and the output of each encoder layer, shapes (S, D)."""
    found: list[Tensor] = []
    layers = list(network.encoder.layers)
    hooks = [layers[0].register_forward_pre_hook(lambda _, inputs: found.append(inputs[0][0]))]
    hooks += [layer.register_forward_hook(lambda _, __, output: found.append(output[0])) for layer in layers]
    try:
        network.encode(torch.tensor([list(source)]))
    finally:
        for hook in hooks:
            hook.remove()
    return found


def examples(network: Transformer, sentences: Sequence[LabelledSentence], name: str) -> tuple[list[Tensor], list[str]]:
    """Return the vectors of each layer, shapes (N, D), of all words that have the property, and their labels."""
    rows: list[list[Tensor]] = []
    found: list[str] = []
    for sentence in sentences:
        layers = vectors_by_layer(network, sentence.source)
        for constituent in sentence.constituents:
            label, places = getattr(constituent, name), sentence.tokens(constituent)
            if label is not None and places:
                rows.append([vectors_SD[places[-1]] for vectors_SD in layers])
                found.append(label)
    return [torch.stack(column) for column in zip(*rows, strict=True)], found


def probe_accuracy(fit_ND: Tensor, fit_labels: Sequence[str], test_ND: Tensor, test_labels: Sequence[str]) -> float:
    """Fit a ridge regression onto one-hot labels; return the share of test labels that it gives."""
    names = sorted(set(fit_labels))
    target_NL = torch.eye(len(names), dtype=torch.float64)[[names.index(label) for label in fit_labels]]
    mean_D, spread_D = fit_ND.double().mean(0), fit_ND.double().std(0) + 1e-6

    def ready(x_ND: Tensor) -> Tensor:
        scaled_ND = (x_ND.double() - mean_D) / spread_D
        return torch.cat([scaled_ND, scaled_ND.new_ones(len(scaled_ND), 1)], dim=1)

    x_ND = ready(fit_ND)
    weights_DL: Tensor = torch.linalg.solve(
        x_ND.T @ x_ND + RIDGE * torch.eye(x_ND.size(1)).double(), x_ND.T @ target_NL
    )
    said: list[int] = (ready(test_ND) @ weights_DL).argmax(-1).tolist()
    return sum(names[index] == label for index, label in zip(said, test_labels, strict=True)) / len(test_labels)


def probe(name: str, context: StudyContext) -> Finding:
    """Return how well a property is read from the encoder's top layer, and from each layer."""
    model = bundled_model()
    trained = network_of(model)
    torch.manual_seed(context.seed)
    untrained = new_network(trained.config).eval()
    assert isinstance(untrained, Transformer)
    sentences = list(labelled_sentences(model))
    fit, test = [s for n, s in enumerate(sentences) if n % 3], sentences[::3]

    def by_layer(network: Transformer) -> list[float]:
        (fit_layers, fit_labels), (test_layers, test_labels) = (examples(network, part, name) for part in (fit, test))
        pairs = zip(fit_layers, test_layers, strict=True)
        return [probe_accuracy(one, fit_labels, other, test_labels) for one, other in pairs]

    found, random = by_layer(trained), by_layer(untrained)
    known = examples(trained, test, name)[1]
    often = max(known.count(label) for label in set(known)) / len(known)
    also = {"random network, top layer": random[-1], "random network, best layer": max(random), "most frequent": often}
    return Finding(found[-1], "accuracy at the top layer; curve: by layer", also, [[n, a] for n, a in enumerate(found)])
