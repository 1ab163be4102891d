"""The largest number in the vectors that each matrix of a network multiplies, while it translates sample sentences.

int8 with fixed ranges (Firefox's alphas) needs them. They are measured in float32 with the translations of the search.
"""

from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor, nn

from transduce.errors import ModelError
from transduce.model.attention import MultiHeadAttention
from transduce.model_directory import ModelDirectory
from transduce.translator import Translator

OUTPUT = "output"
"""The name of the output layer in the result."""


@torch.no_grad()
def largest_inputs(model: ModelDirectory, samples: Sequence[str]) -> dict[str, float]:
    """Return the largest absolute number for each matrix of the layers by its name, and for `OUTPUT`."""
    network, pair = model.network(), model.tokenizers
    found: dict[str, float] = {}

    def note(name: str, vectors: Tensor) -> None:
        found[name] = max(found.get(name, 0.0), float(vectors.abs().max()))

    for name, module in network.named_modules():
        module.register_forward_pre_hook(partial(_note_inputs, name, note))
    texts = [text for text in samples if text.strip()]
    for text, translation in zip(texts, Translator([model], precision="float32").translate(texts), strict=True):
        for sentence in translation.alternatives[0].sentences:
            source = torch.tensor([pair.encode_source(text[sentence.start : sentence.end])])
            note(OUTPUT, network(source, torch.tensor([sentence.tokens])))
    if not found:
        raise ModelError("The samples hold no sentence that this model translates. Give source sentences, one a line.")
    return found


def _note_inputs(name: str, note: Callable[[str, Tensor], None], module: nn.Module, inputs: tuple[Tensor, ...]) -> None:
    if isinstance(module, MultiHeadAttention):  # it joins matrices, whose modules are then not called
        note(f"{name}.W_Q.weight", inputs[0])
        for part in "KV":
            note(f"{name}.W_{part}.weight", inputs[1])
    elif isinstance(module, nn.Linear):
        note(f"{name}.weight", inputs[0])
