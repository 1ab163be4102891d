"""Model directories from strangers: links, pipes, devices and absurd sizes are refused before they cost anything."""

import json
import os
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from transduce.cli.application import app
from transduce.errors import ModelError, RunError
from transduce.files import MANIFEST, locked, write_manifest
from transduce.model_directory import bundled_models, load_model

pytestmark = pytest.mark.skipif(os.name == "nt", reason="uses links and pipes of POSIX systems")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(bundled_models()["en-de"], tmp_path / "models" / "stranger"))


@pytest.mark.parametrize("name", [MANIFEST, "config.json", "tokenizer.model", "weights.safetensors"])
def test_links_out_of_the_folder_are_refused(folder: Path, tmp_path: Path, name: str) -> None:
    (folder / name).rename(tmp_path / "elsewhere")
    (folder / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ModelError, match="link to a place outside its folder"):
        load_model(folder)


@pytest.mark.parametrize("name", [MANIFEST, "config.json"])
def test_pipes_and_devices_are_not_read(folder: Path, name: str) -> None:
    (folder / name).unlink()
    os.mkfifo(folder / name)
    with pytest.raises(ModelError, match="not a regular file"):
        load_model(folder)
    (folder / name).unlink()
    (folder / name).symlink_to("/dev/zero")
    with pytest.raises(ModelError, match="outside its folder"):
        load_model(folder)


def test_links_inside_the_folder_are_followed(folder: Path) -> None:
    (folder / "config.json").rename(folder / "really.json")
    (folder / "config.json").symlink_to("really.json")
    write_manifest(folder)
    assert load_model(folder).description.languages.source == "en"


@pytest.mark.parametrize("name", ["config.json", "tokenizer.model", "weights.safetensors"])
def test_a_file_that_the_manifest_does_not_list_is_not_used(folder: Path, name: str) -> None:
    listed = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    del listed["files"][name]
    (folder / MANIFEST).write_text(json.dumps(listed), encoding="utf-8")
    with pytest.raises(ModelError, match=f"manifest.json does not list {name}"):
        load_model(folder)


def test_a_large_manifest_is_not_parsed(folder: Path) -> None:
    (folder / MANIFEST).write_text(" " * (2 << 20), encoding="utf-8")
    with pytest.raises(ModelError, match="it has 2,097,152 bytes, and may have 1,048,576"):
        load_model(folder)


@pytest.mark.parametrize(("value", "message"), [("9" * 4_300, "a number of 4,300 digits"), ("3000", "more than 512")])
def test_absurd_numbers_are_refused(folder: Path, value: str, message: str) -> None:
    content = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    content["architecture"]["layers"] = 123454321
    content["architecture"].pop("decoder_layers", None)
    text = json.dumps(content).replace("123454321", value)
    (folder / "config.json").write_text(text, encoding="utf-8")
    write_manifest(folder)
    with pytest.raises(ModelError, match=message):
        load_model(folder)


def test_a_tensor_of_many_extents_is_refused(folder: Path) -> None:
    header = {"a": {"dtype": "I8", "shape": [2] * 200_000, "data_offsets": [0, 0]}}
    raw = json.dumps(header).encode()
    (folder / "weights.safetensors").write_bytes(len(raw).to_bytes(8, "little") + raw)
    write_manifest(folder)
    with pytest.raises(ModelError, match="not that of a safetensors file"):
        load_model(folder)


def test_a_lock_that_is_a_link_leaves_its_target_alone(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("text", encoding="utf-8")
    (tmp_path / "run.lock").symlink_to(tmp_path / "precious")
    with pytest.raises(RunError, match=r"run\.lock"), locked(tmp_path / "run.lock", purpose="training"):
        pass
    assert (tmp_path / "precious").read_text(encoding="utf-8") == "text"


def test_models_lists_good_neighbours_of_bad_ones_and_shows_escapes(folder: Path, tmp_path: Path) -> None:
    loud = Path(shutil.copytree(folder, folder.parent / "loud"))
    content = json.loads((loud / "config.json").read_text(encoding="utf-8"))
    content["languages"]["source"] = "\x1b]0;title\x07[red]"
    content["training"]["validation"] = ["no", "table"]
    (loud / "config.json").write_text(json.dumps(content), encoding="utf-8")
    os.mkfifo(Path(shutil.copytree(folder, folder.parent / "piped")) / "x")
    (folder.parent / "piped" / "config.json").unlink()
    os.mkfifo(folder.parent / "piped" / "config.json")
    (folder.parent / "gone").symlink_to(tmp_path / "nowhere")
    result = CliRunner().invoke(app, ["models", str(folder.parent)], env={"COLUMNS": "400"})
    assert result.exit_code == 0, result.output
    assert "stranger" in result.output
    assert "\x1b]0" not in result.output
    assert "\x07" not in result.output
    assert r"\x1b]0;title" in result.output.replace("\n", "")
