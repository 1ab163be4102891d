"""A folder of fairseq: a checkpoint of PyTorch, its dictionaries, and its codes or sentencepiece model.

    checkpoint_best.pt, model.pt or the only *.pt · dict.SOURCE.txt · dict.TARGET.txt · bpecodes or code… or *.model

Positions are `concatenated`, from 2 (padding is 1); epsilon is 1e-5; the first token is `</s>`. Weights have the names
of `fairseq_names.py`. The reader of pickled files runs nothing.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from transduce.errors import ModelError
from transduce.importing.embeddings import EmbeddingMatrices
from transduce.importing.fairseq_names import renamed
from transduce.importing.foreign_model import LARGEST_JSON, ForeignModel, bytes_of, licence_of, model_config, refuse
from transduce.importing.pickled_weights import Record, TorchArchive
from transduce.importing.vocabularies import ForeignVocabulary, fitted
from transduce.model_directory import Languages
from transduce.tensor_file import Array
from transduce.text.piece_file import LARGEST_FILE

_ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "gelu_fast": "gelu_tanh", "gelu_accurate": "gelu_tanh", "swish": "silu"}
_EXPECTED: dict[str, tuple[object, ...]] = {
    "activation_fn": tuple(_ACTIVATIONS),
    "adaptive_input": (False,),
    "adaptive_softmax_cutoff": (None,),
    "cross_self_attention": (False,),
    "no_cross_attention": (False,),
    "no_decoder_final_norm": (False,),
    "quant_noise_pq": (0, 0.0),
    "encoder_layers_to_keep": (None,),
    "decoder_layers_to_keep": (None,),
    "offload_activations": (False, True),
}
_ALIKE = ("attention_heads", "ffn_embed_dim", "embed_dim", "normalize_before", "learned_pos")
_DROPPED = (".version", ".embed_positions._float_tensor")
_EMBEDDINGS = {f"{stack}.embed_tokens.weight" for stack in ("encoder", "decoder")}
_EMBEDDINGS |= {f"{stack}.embed_positions.weight" for stack in ("encoder", "decoder")}
_OUTPUTS = ("decoder.output_projection.weight", "decoder.embed_out")
_FIRST = 2  # rows of a learned table before that of the first position
_SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")
_OVERWRITES = " #fairseq:overwrite"
_CODES = ("bpecodes", "bpe.codes", "codes", "code", "bpe.code")


def is_fairseq(source: Path) -> bool:
    """Return whether a folder holds a checkpoint of fairseq and dictionaries."""
    return source.is_dir() and any(source.glob("*.pt")) and any(source.glob("dict.*.txt"))


def read_fairseq(source: Path, languages: Languages) -> ForeignModel:
    """Return the model in a folder."""
    path = _checkpoint(source)
    options, weights = _content(path)
    name = f"{path}: options"
    refuse(options, _EXPECTED, name=name)
    for option in _ALIKE:
        refuse(options, {f"decoder_{option}": (options.get(f"encoder_{option}"),)}, name=name)
    arch = options.get("arch", "transformer")
    if not isinstance(arch, str) or not arch.startswith("transformer"):
        raise ModelError(f"{name} has arch = {arch!r:.60}, which transduce does not implement.")
    layers, others = renamed(weights)
    unknown = [n for n in others if n not in {*_EMBEDDINGS, *_OUTPUTS} and not n.endswith(_DROPPED)]
    if unknown:
        raise ModelError(f"{path} holds the weight {min(unknown):.100}, which transduce does not know.")
    languages = Languages(
        source=languages.source or _text(options, "source_lang"),
        target=languages.target or _text(options, "target_lang"),
    )
    matrices, (first, second) = _matrices(weights, path), _vocabularies(source, options, languages)
    vocabularies = fitted(first, second, matrices, to=languages.target)
    positions, tables = _positions(weights, options, path)
    config = model_config(
        name=name,
        **vocabularies.options,
        **_sizes(options, layers),
        **positions,
    )
    return ForeignModel(
        origin="fairseq",
        config=config,
        weights=vocabularies.weights | layers | tables,
        tokenizers=vocabularies.tokenizers,
        languages=languages,
        decoding={"beam": 5, "length_penalty": 1.0},
        assumptions=_assumptions(first),
        licence=licence_of(source),
    )


def _checkpoint(source: Path) -> Path:
    found = sorted(source.glob("*.pt"))
    for name in ("checkpoint_best.pt", "model.pt"):
        if source / name in found:
            return source / name
    if len(found) != 1:
        raise ModelError(f"{source} holds {len(found)} checkpoints. Name the one to import model.pt.")
    return found[0]


def _content(path: Path) -> tuple[Mapping[str, Any], dict[str, Array]]:
    """Return the options, which `args` or `cfg` holds, and the weights."""
    archive = TorchArchive(path)
    content = archive.content if isinstance(archive.content, dict) else {}
    settings = content.get("cfg")
    options = settings.get("model") if isinstance(settings, dict) else content.get("args")
    options = options.state if isinstance(options, Record) else options
    if not isinstance(options, dict) or not isinstance(content.get("model"), dict):
        raise ModelError(f"{path} is no checkpoint of fairseq: it lacks the options or the weights.")
    task = settings.get("task") if isinstance(settings, dict) else None
    task = task.state if isinstance(task, Record) else task
    return {**(task if isinstance(task, dict) else {}), **options}, archive.arrays(content["model"])


def _sizes(options: Mapping[str, Any], layers: Mapping[str, Array]) -> dict[str, Any]:
    return {
        "layers": options.get("encoder_layers"),
        "encoder_layers": options.get("encoder_layers"),
        "decoder_layers": options.get("decoder_layers"),
        "d_model": options.get("encoder_embed_dim"),
        "d_ff": options.get("encoder_ffn_embed_dim"),
        "heads": options.get("encoder_attention_heads"),
        "norm": "pre" if options.get("encoder_normalize_before") else "post",
        "norm_epsilon": 1e-5,
        "final_norm": "encoder.final_norm.weight" in layers,
        "embedding_norm": "encoder.embedding_norm.weight" in layers,
        "activation": _ACTIVATIONS[options.get("activation_fn", "relu")],
        "attention_bias": True,
        "embedding_scale": 1.0 if options.get("no_scale_embedding") else None,
    }


def _matrices(weights: Mapping[str, Array], path: Path) -> EmbeddingMatrices:
    source_VD, target_VD = (weights.get(f"{stack}.embed_tokens.weight") for stack in ("encoder", "decoder"))
    if source_VD is None or target_VD is None:
        raise ModelError(f"{path} has no embeddings.")
    return EmbeddingMatrices(source_VD, target_VD, next((weights[n] for n in _OUTPUTS if n in weights), target_VD))


def _positions(
    weights: Mapping[str, Array], options: Mapping[str, Any], path: Path
) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return our options of positions, and the tables if they are learned."""
    if options.get("no_token_positional_embeddings"):
        return {"positions": "none"}, {}
    if not options.get("encoder_learned_pos"):
        return {"positions": "concatenated", "first_position": _FIRST}, {}
    tables = {f"{n}.positions.table_TD": weights.get(f"{n}.embed_positions.weight") for n in ("encoder", "decoder")}
    found = {name: table[_FIRST:] for name, table in tables.items() if table is not None and table.ndim == 2}
    lengths = {len(table) for table in found.values()}
    if len(found) != len(tables) or not lengths:
        raise ModelError(f"{path} has encoder_learned_pos, but lacks a table of positions.")
    shortest = min(lengths)
    return (
        {"positions": "learned", "learned_positions": shortest},
        {name: table[:shortest] for name, table in found.items()},
    )


def _vocabularies(
    source: Path, options: Mapping[str, Any], languages: Languages
) -> tuple[ForeignVocabulary, ForeignVocabulary]:
    codes, piece_file = _cutting(source)
    own = (_text(options, "source_lang") or languages.source, _text(options, "target_lang") or languages.target)
    sides: list[ForeignVocabulary] = []
    for option, language in zip(("source_lang", "target_lang"), own, strict=True):
        path = source / f"dict.{language}.txt"
        if language is None or "/" in language or not path.is_file():
            found = ", ".join(each.name for each in sorted(source.glob("dict.*.txt")))
            raise ModelError(f"{source} has {option} = {language!r:.40} and the dictionaries {found}: none fits.")
        sides.append(
            ForeignVocabulary(
                _pieces(path),
                str(path),
                start="</s>",
                piece_file=piece_file,
                codes=codes,
                moses=None if codes is None else language.partition("_")[0],
            )
        )
    return sides[0], sides[1]


def _pieces(path: Path) -> list[str]:
    lines = bytes_of(path, largest=LARGEST_JSON).decode("utf-8", "replace").split("\n")
    pieces = list(_SPECIAL)
    for number, line in enumerate(lines, start=1):
        words = line.removesuffix("\r").removesuffix(_OVERWRITES).rsplit(" ", 1)
        if line and (len(words) != 2 or not words[1].isdecimal()):
            raise ModelError(f"{path}:{number} is not a piece and its count.")
        if line:
            is_special = words[0] in _SPECIAL and _OVERWRITES in line  # the word, which text may hold, not the token
            pieces.append(words[0] + _OVERWRITES if is_special else words[0])
    return pieces


def _cutting(source: Path) -> tuple[tuple[tuple[str, str], ...] | None, bytes]:
    """Return the codes of subword-nmt or fastBPE, or else a sentencepiece model."""
    path = next((source / name for name in _CODES if (source / name).is_file()), None)
    if path is not None:
        return _codes(path), b""
    models = [*sorted(source.glob("*.model")), *sorted(source.glob("*.spm"))]
    if len(models) != 1:
        raise ModelError(
            f"{source} has no way to cut text: neither {', '.join(_CODES)} nor one sentencepiece model (*.model or "
            "*.spm)."
        )
    return None, bytes_of(models[0], largest=LARGEST_FILE)


def _codes(path: Path) -> tuple[tuple[str, str], ...]:
    lines = bytes_of(path, largest=LARGEST_JSON).decode("utf-8", "replace").split("\n")
    head = lines[0].startswith("#version:")
    if head and lines[0].strip() != "#version: 0.2":
        raise ModelError(f"{path} has {lines[0]:.40}, which transduce does not implement (only #version: 0.2).")
    found: list[tuple[str, str]] = []
    for number, line in enumerate(lines[head:], start=1 + head):
        words = line.split()
        if words and (len(words) not in (2, 3) or (not head and len(words) != 3)):
            raise ModelError(f"{path}:{number} is not a pair of pieces; codes begin with #version: 0.2 or have counts.")
        if words:
            found.append((words[0], words[1]))
    return tuple(found)


def _text(options: Mapping[str, Any], key: str) -> str | None:
    value = options.get(key)
    return value if isinstance(value, str) and value.isprintable() else None


def _assumptions(vocabulary: ForeignVocabulary) -> tuple[str, ...]:
    penalty = "the length penalty of fairseq, a power of the length, is used as the paper's exponent"
    moses = "text goes through Moses' tokenizer before the codes cut it, as is usual with fairseq"
    return (penalty, *((moses,) if vocabulary.codes is not None else ()))
