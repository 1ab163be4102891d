"""A folder of Marian, such as OPUS-MT's and Firefox's: weights, vocabularies, and perhaps a shortlist.

    model.npz or .bin · vocabularies .spm or .yml (with source.spm and target.spm) · decoder.yml · lex….s2t.bin

Positions are `concatenated`, from 0; epsilon is 1e-6. The first token is a vector of zeros, and a source ends in
`</s>`. The file of the weights holds the options of the network.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from transduce.errors import ModelError
from transduce.importing.embeddings import EmbeddingMatrices
from transduce.importing.foreign_model import LARGEST_JSON, ForeignModel, bytes_of, licence_of, model_config, refuse
from transduce.importing.marian_file import read_marian_file
from transduce.importing.marian_names import renamed
from transduce.importing.marian_shortlist import read_marian_shortlist
from transduce.importing.marian_text import Options, options_of, pieces_to_ids
from transduce.importing.vocabularies import ForeignVocabulary, fitted, numbered_pieces
from transduce.model_directory import Languages
from transduce.tensor_file import Array
from transduce.text.piece_file import LARGEST_FILE, read_piece_file

_ACTIVATIONS = {"swish": "silu", "relu": "relu", "gelu": "gelu_sigmoid"}
_OFF = ("false",)
_EXPECTED: dict[str, tuple[object, ...]] = {
    "type": ("transformer",),
    "transformer-preprocess": ("", "n"),
    "transformer-decoder-autoreg": ("self-attention", "rnn"),
    "transformer-ffn-activation": tuple(_ACTIVATIONS),
    "transformer-ffn-depth": ("2",),
    "transformer-decoder-ffn-depth": ("0", "2"),
    "transformer-postprocess-emb": ("d", "", "n", "nd", "dn"),
    "transformer-postprocess-top": ("", "n"),
    "transformer-attention-mask": ("default",),
    "lemma-dim-emb": ("0",),
    "factors-dim-emb": ("0",),
    **dict.fromkeys(
        (
            *("transformer-no-projection", "transformer-rnn-projection", "transformer-pool", "transformer-no-bias"),
            *("transformer-no-affine", "transformer-train-position-embeddings", "right-left", "ulr"),
            "transformer-disable-position-embeddings",
        ),
        _OFF,
    ),
}
_POSTPROCESS = {"": ("dan", "an"), "n": ("da", "a")}
"""What follows a sublayer, by what precedes it: post-norm or pre-norm."""
_EMBEDDINGS = {"Wemb", "encoder_Wemb", "decoder_Wemb"}
_OUTPUT = "decoder_ff_logit_out"
_LANGUAGES = re.compile(r"\.([a-z]{2,3})-?([a-z]{2,3})\.")


def is_marian(source: Path) -> bool:
    """Return whether a folder holds a model of Marian."""
    return source.is_dir() and bool(_candidates(source))


def read_marian(source: Path, languages: Languages) -> ForeignModel:
    """Return the model in a folder."""
    search = _search(source)
    path = _model_path(source, search)
    file = read_marian_file(path)
    options, name = options_of(file.options), f"{path}: options"
    refuse(options, _EXPECTED, name=name)
    before = str(options.get("transformer-preprocess", ""))
    refuse(options, {"transformer-postprocess": _POSTPROCESS[before]}, name=name)
    if options.get("transformer-decoder-autoreg") == "rnn":
        refuse(options, {"dec-cell": ("ssru",)}, name=name)
    tied_layers = _numbers(options, "transformer-tied-layers", name)
    layers, others = renamed(file.weights, tied_layers=tied_layers)
    unknown = set(others) - _EMBEDDINGS - {f"{_OUTPUT}_{kind}" for kind in ("b", "W", "Wt")}
    if unknown:
        raise ModelError(f"{path} holds the weight {min(unknown):.100}, which transduce does not know.")
    matrices, sizes = _matrices(file.weights, path), _sizes(options, layers, name)
    paths = _vocabulary_paths(source, search)
    first = _vocabulary(paths[0], source / "source.spm", matrices.source_VD)
    second = _vocabulary(paths[1], source / "target.spm", matrices.target_VD)
    vocabularies = fitted(first, second, matrices, to=languages.target)
    shortlists = sorted(source.glob("lex*.bin"))
    return ForeignModel(
        origin="Marian",
        config=model_config(
            name=name,
            **vocabularies.options,
            **sizes,
        ),
        weights=vocabularies.weights | layers,
        tokenizers=vocabularies.tokenizers,
        languages=_languages(languages, path),
        decoding=_decoding(search) | ({"shortlist": True} if shortlists else {}),
        assumptions=(
            "text is not normalised by other programs before it is cut into pieces",
            *(["decoding normalises keys and values, as training does; Marian's decoder does not"] if before else []),
            *(f"{key} = {search[key]} of decoder.yml is left out" for key in ("word-penalty",) if key in search),
        ),
        licence=licence_of(source),
        shortlist=read_marian_shortlist(shortlists[0], first.pieces, vocabularies.tokenizers) if shortlists else None,
    )


def _sizes(options: Options, layers: Mapping[str, Array], name: str) -> dict[str, Any]:
    inner = layers.get("encoder.layers.0.feed_forward.W_1.weight")
    if inner is None or inner.ndim != 2:
        raise ModelError(f"{name} has no encoder layer with a feed-forward network.")
    depths = [_numbers(options, key, name) for key in ("enc-depth", "dec-depth", "transformer-heads")]
    if not all(len(depth) == 1 for depth in depths):
        raise ModelError(f"{name} lacks enc-depth, dec-depth or transformer-heads.")
    return {
        "layers": depths[0][0],
        "encoder_layers": depths[0][0],
        "decoder_layers": depths[1][0],
        "heads": depths[2][0],
        "d_ff": inner.shape[0],
        "d_model": inner.shape[1],
        "norm": "pre" if options.get("transformer-preprocess") == "n" else "post",
        "final_norm": options.get("transformer-postprocess-top") == "n",
        "embedding_norm": "n" in options.get("transformer-postprocess-emb", "d"),
        "decoder_mixer": "ssru" if options.get("transformer-decoder-autoreg") == "rnn" else "attention",
        "activation": _ACTIVATIONS[str(options.get("transformer-ffn-activation", "swish"))],
        "attention_bias": True,
        "positions": "concatenated",
        "start_from_zeros": True,
    }


def _numbers(options: Options, key: str, name: str) -> list[int]:
    found = options.get(key, [])
    texts = found if isinstance(found, list) else [found]
    if len(texts) > 1000 or not all(text.isdecimal() and len(text) < 10 for text in texts):
        raise ModelError(f"{name} has {key} = {', '.join(texts):.100}, which are no numbers.")
    return [int(text) for text in texts]


def _matrices(weights: Mapping[str, Array], path: Path) -> EmbeddingMatrices:
    source_VD, target_VD = (weights.get(name, weights.get("Wemb")) for name in ("encoder_Wemb", "decoder_Wemb"))
    if source_VD is None or target_VD is None:
        raise ModelError(f"{path} has no embeddings.")
    output_VD = weights.get(f"{_OUTPUT}_Wt", weights[f"{_OUTPUT}_W"].T if f"{_OUTPUT}_W" in weights else target_VD)
    bias_1V = weights.get(f"{_OUTPUT}_b")
    return EmbeddingMatrices(source_VD, target_VD, output_VD, None if bias_1V is None else np.reshape(bias_1V, -1))


def _candidates(source: Path) -> list[Path]:
    files = [*sorted(source.glob("*.npz")), *sorted(source.glob("*.bin"))]
    return [
        path
        for path in files
        if not path.name.endswith(".optimizer.npz")
        and not path.name.startswith("lex")
        and path.name not in ("model.bin", "pytorch_model.bin")
    ] or [path for path in files if path.name == "model.bin" and (source / "decoder.yml").is_file()]


def _model_path(source: Path, search: Options) -> Path:
    named = search.get("models", [])
    paths = [source / Path(each).name for each in named] if isinstance(named, list) else []
    paths = paths if paths and all(path.is_file() for path in paths) else _candidates(source)
    if len(paths) != 1:
        raise ModelError(f"{source} holds {len(paths)} models: {', '.join(path.name for path in paths)}. Leave one.")
    return paths[0]


def _search(source: Path) -> Options:
    """Return the content of decoder.yml, or of a configuration such as config.intgemm8bitalpha.yml."""
    for path in (source / "decoder.yml", source / "config.yml", *sorted(source.glob("config.*.yml"))):
        if path.is_file():
            return options_of(bytes_of(path, largest=LARGEST_JSON).decode("utf-8", "replace"))
    return {}


def _vocabulary_paths(source: Path, search: Options) -> list[Path]:
    named = search.get("vocabs", [])
    paths = [source / Path(each).name for each in named] if isinstance(named, list) else []
    if len(paths) == 2 and all(path.is_file() for path in paths):
        return paths
    sides = (("srcvocab*.spm", "trgvocab*.spm"), ("*.src.vocab", "*.trg.vocab"))
    for patterns in (sides[0], ("vocab*.spm",), ("*vocab*.yml",), ("*vocab*.json",), sides[1]):
        found = [sorted(source.glob(pattern)) for pattern in patterns]
        if all(len(each) == 1 for each in found):
            return [found[0][0], found[-1][0]]
    raise ModelError(f"{source} has no vocabulary: vocab….spm, srcvocab….spm and trgvocab….spm, or vocab.yml.")


def _vocabulary(path: Path, cutting: Path, rows_VD: Array) -> ForeignVocabulary:
    if path.suffix == ".spm":
        piece_file = bytes_of(path, largest=LARGEST_FILE)
        pieces = list(read_piece_file(piece_file, name=str(path)).names)
        return ForeignVocabulary(pieces, str(path), start="</s>", piece_file=piece_file)
    is_plain = path.suffix not in (".yml", ".yaml", ".json")
    ids = pieces_to_ids(bytes_of(path, largest=LARGEST_JSON), name=str(path), is_plain=is_plain)
    pieces = numbered_pieces(ids, name=str(path))
    if not cutting.is_file():
        raise ModelError(f"{path} is a vocabulary without a way to cut text: {cutting.name} is missing beside it.")
    piece_file = bytes_of(cutting, largest=LARGEST_FILE)
    return ForeignVocabulary(pieces[: len(rows_VD)], str(path), start="</s>", piece_file=piece_file)


def _decoding(search: Options) -> dict[str, Any]:
    beam, penalty = str(search.get("beam-size", "4")), str(search.get("normalize", "1"))
    is_number = re.fullmatch(r"\d(\.\d{1,6})?", penalty)
    return {
        "beam": int(beam) if re.fullmatch("[1-9]|[12][0-9]|3[0-2]", beam) else 4,
        "length_penalty": float(penalty) if is_number else 1.0,
    }


def _languages(given: Languages, path: Path) -> Languages:
    """Return the languages, those not given from a name such as model.ende.intgemm.alphas.bin."""
    match = _LANGUAGES.search(path.name)
    return Languages(
        source=given.source or (match[1] if match else None), target=given.target or (match[2] if match else None)
    )
