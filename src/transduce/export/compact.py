"""Writes a model directory with smaller weights: bf16, or int8 with a scale for every row.

An int8 model needs a quarter of the bytes, and everything that reads a model directory can read it. Norms and biases
are stored unchanged. The model card names the number format.
"""

from pathlib import Path

from transduce.errors import ModelError
from transduce.model_directory import CARD, ModelDirectory, Storage, save_model, stored

_MEANINGS: dict[Storage, str] = {
    "float32": "float32, as they were trained",
    "bf16": "bf16, with eight significant bits for each number",
    "int8": "int8 with a float32 scale for every row",
}


def export_compact(model: ModelDirectory, folder: Path, *, weights: Storage, words: str = "") -> int:
    """Write the model to `folder`, which must not exist, with weights in the given format; return their size in bytes.

    `words` go to the top of the model card, such as the licence of the data and the purpose of the model.
    """
    if folder.exists():
        raise ModelError(f"{folder} exists already. Choose another name, or remove it first.")
    card = model.folder / CARD
    text = card.read_text(encoding="utf-8") if card.is_file() else "# A model\n"
    if words:
        text = f"{words.rstrip()}\n\n{text}"
    save_model(
        folder,
        model.description.model_copy(update={"weights": weights}),
        model.parameters,
        tokenizers=model.tokenizers,
        card=f"{text.rstrip()}\n\n## Storage\n\nThe matrices are stored as {_MEANINGS[weights]}.\n",
        training_hashes=model.training_hashes(),
        shortlist=model.shortlist(),
    )
    return sum(tensor.nbytes for tensor in stored(model.parameters, weights).values())
