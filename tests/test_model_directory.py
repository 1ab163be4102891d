"""Model directories: what is written comes back, and what is damaged, foreign or hostile is refused by name."""

import json
import shutil
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from transduce.data.shortlist import Shortlist
from transduce.errors import ModelError
from transduce.files import write_manifest
from transduce.model import ModelConfig, Transformer
from transduce.model_directory import (
    Description,
    Languages,
    find_model,
    load_model,
    quantize_rows,
    read_description,
    save_model,
)
from transduce.special_tokens import OWN_SPECIAL_TOKENS
from transduce.tensor_file import read_header
from transduce.text.bpe_tokenizer import BpeTokenizer
from transduce.text.character_tokenizer import CharacterTokenizer
from transduce.text.tokenizer_pair import TokenizerPair

LINES = ["the dog runs", "the cat sleeps", "der Hund läuft", "die Katze schläft"] * 3


@pytest.fixture(scope="module")
def tokenizer() -> BpeTokenizer:
    return BpeTokenizer.learn(LINES, vocabulary_size=400)


@pytest.fixture(scope="module")
def network(tokenizer: BpeTokenizer) -> Transformer:
    torch.manual_seed(3)
    config = ModelConfig(vocabulary_size=tokenizer.vocabulary_size, d_model=22, heads=11, d_ff=13, layers=2, dropout=0)
    return Transformer(config).eval()


def parameters_of(network: Transformer) -> dict[str, Tensor]:
    return {name: parameter.detach() for name, parameter in network.named_parameters()}


def saved(folder: Path, network: Transformer, tokenizer: BpeTokenizer, **changes: object) -> Path:
    description = Description(
        architecture=network.config, languages=Languages(source="en", target="de"), longest_sentence=17
    ).model_copy(update=changes)
    save_model(
        folder, description, parameters_of(network), tokenizers=TokenizerPair.shared(tokenizer), card="# A card\n"
    )
    return folder


def test_float32_comes_back_bit_for_bit(tmp_path: Path, network: Transformer, tokenizer: BpeTokenizer) -> None:
    loaded = load_model(saved(tmp_path / "model", network, tokenizer))
    source_BS, target_BT = torch.tensor([[5, 9, 3]]), torch.tensor([[7, 8, 11, 3]])
    assert torch.equal(loaded.network()(source_BS, target_BT), network(source_BS, target_BT))
    assert loaded.description.languages == Languages(source="en", target="de")
    assert loaded.tokenizers.target.encode("the dog") == tokenizer.encode("the dog")
    assert sorted(path.name for path in (tmp_path / "model").iterdir()) == [
        "README.md",
        "config.json",
        "manifest.json",
        "tokenizer.model",
        "weights.safetensors",
    ]


@pytest.mark.parametrize("tied", ["all", "decoder", "inputs", "none"])
def test_a_tied_matrix_is_stored_once_and_tied_again(
    tmp_path: Path, tokenizer: BpeTokenizer, tied: Literal["all", "decoder", "inputs", "none"]
) -> None:
    config = ModelConfig(vocabulary_size=tokenizer.vocabulary_size, d_model=6, heads=3, d_ff=5, layers=1, tied=tied)
    network = Transformer(config)
    folder = saved(tmp_path / "model", network, tokenizer)
    parameters = sum(parameter.numel() for parameter in network.parameters())
    assert (folder / "weights.safetensors").stat().st_size < 4 * parameters + 8_000
    again = load_model(folder).network()
    assert isinstance(again, Transformer)
    assert sum(parameter.numel() for parameter in again.parameters()) == parameters
    assert (again.embeddings.source_VD is again.embeddings.output_VD) == (tied == "all")


def test_int8_is_within_half_a_step_of_each_row(tmp_path: Path, network: Transformer, tokenizer: BpeTokenizer) -> None:
    loaded = load_model(saved(tmp_path / "model", network, tokenizer, weights="int8"))
    for name, original in parameters_of(network).items():
        difference = (torch.from_numpy(loaded.parameters[name]) - original).abs()
        if original.dim() < 2:
            assert torch.equal(torch.from_numpy(loaded.parameters[name]), original), name
        else:
            half_step = original.abs().amax(dim=1, keepdim=True) / 127 / 2
            assert bool((difference <= half_step * 1.0001).all()), name
            assert difference.max() > 0


def test_bf16_rounds_matrices_and_nothing_else(tmp_path: Path, network: Transformer, tokenizer: BpeTokenizer) -> None:
    loaded = load_model(saved(tmp_path / "model", network, tokenizer, weights="bf16"))
    for name, original in parameters_of(network).items():
        expected = original.bfloat16().float() if original.dim() > 1 else original
        assert torch.equal(torch.from_numpy(loaded.parameters[name]), expected), name


def test_a_row_of_zeros_quantizes_to_zeros() -> None:
    quantized, scale = quantize_rows(np.array([[0.0, 0.0], [-2.54, 1.27]], np.float32))
    assert quantized.tolist() == [[0, 0], [-127, 64]]
    assert scale.tolist() == pytest.approx([0.0, 0.02])


def test_training_hashes_are_kept_when_given(tmp_path: Path, network: Transformer, tokenizer: BpeTokenizer) -> None:
    hashes = np.array([1, 2**63, 2**64 - 1], dtype=np.uint64)
    description = Description(architecture=network.config)
    save_model(
        tmp_path / "m",
        description,
        parameters_of(network),
        tokenizers=TokenizerPair.shared(tokenizer),
        card="",
        training_hashes=hashes,
    )
    kept = load_model(tmp_path / "m").training_hashes()
    assert kept is not None
    assert kept.tolist() == hashes.tolist()
    assert load_model(saved(tmp_path / "n", network, tokenizer)).training_hashes() is None


def test_damaged_hashes_are_refused(tmp_path: Path, network: Transformer, tokenizer: BpeTokenizer) -> None:
    """The file is in the manifest, but not among what must verify before a model translates."""
    hashes = np.array([1, 2], dtype=np.uint64)
    description = Description(architecture=network.config)
    parameters = parameters_of(network)
    save_model(
        tmp_path, description, parameters, tokenizers=TokenizerPair.shared(tokenizer), card="", training_hashes=hashes
    )
    file = tmp_path / "training_hashes.safetensors"
    header = b'{"hashes":{"dtype":"U64","shape":[2],"data_offsets":[0,16]},"__metadata__":[]}'
    file.write_bytes(len(header).to_bytes(8, "little") + header + bytes(16))
    with pytest.raises(ModelError, match=r"training_hashes.safetensors is damaged: .* its manifest says"):
        load_model(tmp_path).training_hashes()
    write_manifest(tmp_path)
    with pytest.raises(ModelError, match=r"training_hashes.safetensors is damaged: its header"):
        load_model(tmp_path).training_hashes()


def with_lists(folder: Path, network: Transformer, tokenizer: BpeTokenizer, lists: dict[str, torch.Tensor]) -> Path:
    """Save a model with a shortlist, put these tensors in its place, and let the manifest vouch for them."""
    candidates = np.zeros((tokenizer.vocabulary_size, 2), dtype=np.int32)
    shortlist = Shortlist(np.array([7], dtype=np.int32), candidates, OWN_SPECIAL_TOKENS, copies_sources=True)
    description = Description(architecture=network.config)
    parameters = parameters_of(network)
    save_model(
        folder, description, parameters, tokenizers=TokenizerPair.shared(tokenizer), card="", shortlist=shortlist
    )
    if lists:
        save_file(lists, folder / "shortlist.safetensors")
        write_manifest(folder)
    return folder


def test_a_shortlist_is_kept_when_given(tmp_path: Path, network: Transformer, tokenizer: BpeTokenizer) -> None:
    kept = load_model(with_lists(tmp_path / "m", network, tokenizer, {})).shortlist()
    assert kept is not None
    assert kept.tokens([9, 3]) == [0, 1, 2, 3, 7, 9]
    assert read_header(tmp_path / "m/shortlist.safetensors")["candidates"]["dtype"] == "I16"  # half the size
    wide = {
        "common": torch.tensor([7], dtype=torch.int32),
        "candidates": torch.zeros(tokenizer.vocabulary_size, 2).int(),
    }
    earlier = load_model(with_lists(tmp_path / "earlier", network, tokenizer, wide)).shortlist()
    assert earlier is not None and earlier.tokens([9, 3]) == kept.tokens([9, 3])  # noqa: PT018
    assert load_model(saved(tmp_path / "n", network, tokenizer)).shortlist() is None


@pytest.mark.parametrize(
    ("common", "candidates", "fault"),
    [
        (torch.tensor([-1], dtype=torch.int32), None, "names tokens outside the vocabulary of"),
        (torch.tensor([10**9], dtype=torch.int32), None, "names tokens outside the vocabulary of"),
        (torch.tensor([7], dtype=torch.int8), None, "not lists for"),
        (torch.tensor([[7]], dtype=torch.int32), None, "not lists for"),
        (None, torch.zeros(5, 2, dtype=torch.int32), "not lists for"),
        (None, torch.zeros(5, dtype=torch.int32), "not lists for"),
    ],
)
def test_a_strangers_shortlist_is_not_believed(
    tmp_path: Path,
    network: Transformer,
    tokenizer: BpeTokenizer,
    common: torch.Tensor | None,
    candidates: torch.Tensor | None,
    fault: str,
) -> None:
    whole = range(tokenizer.vocabulary_size)
    lists = {
        "common": torch.tensor([7], dtype=torch.int32) if common is None else common,
        "candidates": torch.zeros(len(whole), 2, dtype=torch.int32) if candidates is None else candidates,
    }
    model = load_model(with_lists(tmp_path, network, tokenizer, lists))
    with pytest.raises(ModelError, match=rf"shortlist.safetensors is damaged: .*{fault}.* leave out the shortlist"):
        model.shortlist()


def test_a_changed_shortlist_is_noticed(tmp_path: Path, network: Transformer, tokenizer: BpeTokenizer) -> None:
    model = load_model(with_lists(tmp_path, network, tokenizer, {}))
    path = tmp_path / "shortlist.safetensors"
    content = path.read_bytes()
    path.write_bytes(content[:-1] + b"\x01")
    with pytest.raises(ModelError, match=r"shortlist.safetensors is damaged: .* Copy the folder again"):
        model.shortlist()


def test_a_changed_card_is_nobodys_business(tmp_path: Path, network: Transformer, tokenizer: BpeTokenizer) -> None:
    folder = saved(tmp_path / "model", network, tokenizer)
    (folder / "README.md").write_text("mine now", encoding="utf-8")
    assert load_model(folder).description.format_version == 1


def save_pair(folder: Path, network: Transformer, pair: TokenizerPair) -> dict[str, object]:
    """Save a model with these tokenizers and return its config.json."""
    save_model(folder, Description(architecture=network.config), parameters_of(network), tokenizers=pair, card="")
    content: dict[str, object] = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    return content


def test_tokenizers_that_format_1_cannot_say_are_format_2(
    tmp_path: Path, network: Transformer, tokenizer: BpeTokenizer
) -> None:
    """`tokenizer`, `source_tokenizer` and `source_end` are in config.json only where they differ from format 1."""
    characters = CharacterTokenizer([chr(0x400 + n) for n in range(tokenizer.vocabulary_size - 277)])
    again, later = BpeTokenizer.from_bytes(tokenizer.to_bytes()), {"tokenizer", "source_tokenizer", "source_end"}
    for number, (pair, said) in enumerate(
        [
            (TokenizerPair.shared(tokenizer), {}),
            (TokenizerPair.shared(tokenizer, source_end=False), {"source_end": False}),
            (TokenizerPair.shared(characters), {"tokenizer": "characters"}),
            (TokenizerPair(again, tokenizer), {"source_tokenizer": "bpe"}),
            (TokenizerPair(characters, tokenizer), {"source_tokenizer": "characters"}),
        ]
    ):
        folder = tmp_path / str(number)
        content = save_pair(folder, network, pair)
        assert content["format_version"] == (2 if said else 1)
        assert {key: content[key] for key in later & content.keys()} == said
        assert (folder / "source_tokenizer.model").exists() == ("source_tokenizer" in said)
        loaded = load_model(folder)
        assert loaded.tokenizers.fingerprint == pair.fingerprint
        assert loaded.network().tokens == pair.special


def test_tokenizers_that_do_not_belong_to_the_model_are_refused(
    tmp_path: Path, network: Transformer, tokenizer: BpeTokenizer
) -> None:
    characters = CharacterTokenizer([chr(0x400 + n) for n in range(tokenizer.vocabulary_size - 277)])
    save_pair(tmp_path, network, TokenizerPair(characters, tokenizer))
    source = tmp_path / "source_tokenizer.model"
    for content in (tokenizer.to_bytes(), CharacterTokenizer(["a", "b"]).to_bytes()):
        source.write_bytes(content)
        with pytest.raises(ModelError, match=r"source_tokenizer\.model .*manifest|SHA-256"):
            load_model(tmp_path)
        write_manifest(tmp_path)
        with pytest.raises(ModelError, match=r"pieces of the kind .* do not belong together"):
            load_model(tmp_path)
    source.unlink()
    with pytest.raises(ModelError, match=r"source_tokenizer\.model is missing"):
        load_model(tmp_path)


@pytest.mark.parametrize(
    ("changes", "version"),
    [({}, 1), ({"activation": "gelu"}, 1), ({"activation": "silu"}, 2), ({"output_bias": True}, 2)],
)
def test_format_2_is_written_only_where_format_1_has_no_key_or_no_value_for_it(
    network: Transformer, changes: dict[str, object], version: int
) -> None:
    description = Description(architecture=network.config.model_copy(update=changes))
    content = json.loads(description.to_json())
    assert content["format_version"] == version
    assert (
        content["architecture"].keys() - {"output_bias"}
        == json.loads(Description(architecture=network.config).to_json())["architecture"].keys()
    )


def damage_config(folder: Path, **changes: object) -> None:
    content = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    (folder / "config.json").write_text(json.dumps({**content, **changes}), encoding="utf-8")
    write_manifest(folder)


def test_refusals_say_what_is_wrong(tmp_path: Path, network: Transformer, tokenizer: BpeTokenizer) -> None:
    whole = saved(tmp_path / "whole", network, tokenizer)

    def copy(name: str) -> Path:
        return Path(shutil.copytree(whole, tmp_path / name))

    with pytest.raises(ModelError, match="There is no model at"):
        load_model(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ModelError, match=r"it has no config\.json"):
        load_model(tmp_path / "empty")

    newer = copy("newer")
    damage_config(newer, format_version=3)
    with pytest.raises(ModelError, match=r"format version 3, but this transduce reads up to 2\. Update"):
        load_model(newer)
    foreign = copy("foreign")
    damage_config(foreign, format="marian")
    with pytest.raises(ModelError, match="was not written by transduce"):
        load_model(foreign)
    torn = copy("torn")
    (torn / "config.json").write_text('{"format": ', encoding="utf-8")
    with pytest.raises(ModelError, match=r"config\.json is damaged"):
        load_model(torn)
    unknown = copy("unknown")
    damage_config(unknown, surprise=1)
    with pytest.raises(ModelError, match="surprise: Extra inputs"):
        load_model(unknown)
    missing = copy("missing")
    (missing / "weights.safetensors").unlink()
    with pytest.raises(ModelError, match=r"weights\.safetensors is missing"):
        load_model(missing)
    flipped = copy("flipped")
    content = bytearray((flipped / "weights.safetensors").read_bytes())
    content[-5] ^= 1
    (flipped / "weights.safetensors").write_bytes(content)
    with pytest.raises(ModelError, match="does not match its SHA-256"):
        load_model(flipped)
    cut = copy("cut")
    (cut / "weights.safetensors").write_bytes((whole / "weights.safetensors").read_bytes()[:-4])
    write_manifest(cut)
    with pytest.raises(ModelError, match="it should hold"):
        load_model(cut)
    wider = copy("wider")
    architecture = json.loads((wider / "config.json").read_text(encoding="utf-8"))["architecture"]
    damage_config(wider, architecture={**architecture, "d_ff": 17})
    with pytest.raises(ModelError, match=r"does not fit config\.json: .* where the architecture"):
        load_model(wider)
    deep = copy("deep")
    damage_config(deep, architecture={**architecture, "layers": 10**9})
    with pytest.raises(ModelError, match="more than 512 layers"):
        load_model(deep)
    other = copy("other")
    (other / "tokenizer.model").write_bytes(BpeTokenizer.learn(LINES, vocabulary_size=290).to_bytes())
    write_manifest(other)
    with pytest.raises(ModelError, match="do not belong together"):
        load_model(other)


def test_a_strangers_key_is_shown_and_not_written_to_the_terminal_as_it_is(
    tmp_path: Path, network: Transformer, tokenizer: BpeTokenizer
) -> None:
    folder = saved(tmp_path / "m", network, tokenizer)
    architecture = json.loads((folder / "config.json").read_text(encoding="utf-8"))["architecture"]
    damage_config(folder, architecture={**architecture, "\x1b[2J\norm": 1})
    with pytest.raises(ModelError, match=r"is damaged: architecture\.\\x1b\[2J\\norm: Extra inputs") as refusal:
        load_model(folder)
    assert str(refusal.value).isprintable()


def test_a_lying_header_takes_no_memory(tmp_path: Path, network: Transformer, tokenizer: BpeTokenizer) -> None:
    folder = saved(tmp_path / "model", network, tokenizer)
    header = json.dumps({"x": {"dtype": "F32", "shape": [1 << 40], "data_offsets": [0, 4 << 40]}}).encode()
    for claimed in (len(header), 1 << 60):
        (folder / "weights.safetensors").write_bytes(claimed.to_bytes(8, "little") + header)
        write_manifest(folder)
        with pytest.raises(
            ModelError, match=r"is damaged: (it should hold 4,398,046,511,104 bytes|its header would be)"
        ):
            load_model(folder)


@pytest.mark.parametrize("factor", [1 << 40, 1 << 80])
def test_sizes_beyond_all_memory_are_refused(
    tmp_path: Path, network: Transformer, tokenizer: BpeTokenizer, factor: int
) -> None:
    folder = saved(tmp_path / "model", network, tokenizer)
    content = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    content["architecture"]["d_model"] *= factor
    (folder / "config.json").write_text(json.dumps(content), encoding="utf-8")
    write_manifest(folder)
    with pytest.raises(
        ModelError, match=r"weights.safetensors does not fit config.json|config.json is damaged: a number of \d+ digits"
    ):
        load_model(folder)


def test_names_of_models(tmp_path: Path, network: Transformer, tokenizer: BpeTokenizer) -> None:
    saved(tmp_path / "run" / "model", network, tokenizer)
    assert find_model(str(tmp_path / "run")) == tmp_path / "run" / "model"
    assert find_model(str(tmp_path / "run" / "model")) == tmp_path / "run" / "model"
    assert read_description(find_model(str(tmp_path / "run"))).longest_sentence == 17
    with pytest.raises(ModelError, match="There is no folder en-xx and no bundled model of that name"):
        find_model("en-xx")
