"""The Argos package: Argos Translate itself installs it and translates.

It runs in an environment of its own, whose Python TRANSDUCE_ARGOS_PYTHON names. Its sentence splitter would download a
model, so each text is taken as one sentence there: the splitter is stubbed, and nothing else.
"""

import json
import os
import subprocess
import zipfile
from pathlib import Path

import pytest
import torch

from transduce.errors import ModelError
from transduce.export.argos import export_argos
from transduce.model.config import ModelConfig
from transduce.model.transformer import Transformer
from transduce.model_directory import Description, Languages, ModelDirectory, load_model, save_model
from transduce.networks.log_probabilities import token_log_probabilities
from transduce.text.bpe_tokenizer import BpeTokenizer
from transduce.text.tokenizer_pair import TokenizerPair
from transduce.translator import Translator

PAIRS = {"the dog runs.": "der Hund läuft.", "a cat sleeps here": "eine Katze schläft hier", "two bears": "zwei Bären"}
SCRIPT = """
import json, sys
from argostranslate import package, translate

class WholeText:
    def __init__(self, pkg): pass
    def split_sentences(self, text): return [text]

translate.MiniSBDSentencizer = WholeText
package.install_from_path(sys.argv[1])
(installed,) = package.get_installed_packages()
languages = {own.code: own for own in translate.get_installed_languages()}
translation = languages["en"].get_translation(languages["de"])
found = [translation.translate(text) for text in json.loads(sys.argv[2])]
print(json.dumps([str(installed), languages["de"].name, found]))
"""


def make(folder: Path, *, steps: int, **languages: str | None) -> ModelDirectory:
    """Write a small model that has learned the pairs by heart, if it is given the steps to."""
    torch.manual_seed(1)
    tokenizer = BpeTokenizer.learn([*PAIRS, *PAIRS.values()] * 3, vocabulary_size=400)
    config = ModelConfig(vocabulary_size=tokenizer.vocabulary_size, d_model=32, heads=2, d_ff=64, layers=1, dropout=0.0)
    model = Transformer(config)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    encoded = [
        [torch.tensor([[*tokenizer.encode(text), tokenizer.special.end]]) for text in pair] for pair in PAIRS.items()
    ]
    for step in range(steps):
        source_BS, target_BT = encoded[step % len(encoded)]
        hidden_BTD = model(source_BS, target_BT)
        loss = -token_log_probabilities(hidden_BTD, model.output, target_BT).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    description = Description(
        architecture=config,
        languages=Languages(**{"source": "en", "target": "de", **languages}),
        longest_sentence=99,
    )
    save_model(folder, description, dict(model.named_parameters()), tokenizers=TokenizerPair.shared(tokenizer), card="")
    return load_model(folder)


@pytest.mark.slow
def test_argos_translate_installs_and_translates(tmp_path: Path) -> None:
    pytest.importorskip("ctranslate2", reason="CTranslate2 is not installed: pip install 'transduce[ctranslate2]'")
    python = os.environ.get("TRANSDUCE_ARGOS_PYTHON")
    if not python:
        pytest.skip("TRANSDUCE_ARGOS_PYTHON names no Python that has argostranslate")
    make(tmp_path / "model", steps=240)
    translator = Translator.load(tmp_path / "model", threads=1)
    assert [translator.translate(text).text for text in PAIRS] == list(PAIRS.values())
    export_argos(load_model(tmp_path / "model"), tmp_path / "en_de.argosmodel")
    homes = {f"XDG_{kind}_HOME": str(tmp_path / kind) for kind in ("DATA", "CONFIG", "CACHE")}
    done = subprocess.run(
        [python, "-c", SCRIPT, str(tmp_path / "en_de.argosmodel"), json.dumps(list(PAIRS))],
        env={**{k: v for k, v in os.environ.items() if k != "PYTHONPATH"}, **homes, "ARGOS_DEVICE_TYPE": "cpu"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    name, target, found = json.loads(done.stdout.splitlines()[-1])
    assert (name, target) == ("English → German", "German")
    assert found == list(PAIRS.values())


def test_a_package_holds_what_argos_looks_for(tmp_path: Path) -> None:
    pytest.importorskip("ctranslate2", reason="CTranslate2 is not installed: pip install 'transduce[ctranslate2]'")
    model = make(tmp_path / "model", steps=0, source="en-GB")
    for name in ("a.argosmodel", "b.argosmodel"):
        export_argos(model, tmp_path / name)
    assert (tmp_path / "a.argosmodel").read_bytes() == (tmp_path / "b.argosmodel").read_bytes()
    with zipfile.ZipFile(tmp_path / "a.argosmodel") as archive:
        names = {name.partition("/")[2] for name in archive.namelist()}
        metadata = json.loads(archive.read("translate-en_de/metadata.json"))
        assert archive.read("translate-en_de/sentencepiece.model") == model.tokenizers.target.to_bytes()
    assert {"metadata.json", "README.md", "sentencepiece.model", "model/model.bin", "model/config.json"} <= names
    assert (metadata["from_code"], metadata["from_name"]) == ("en", "English")


@pytest.mark.parametrize(
    ("name", "languages", "message"),
    [
        ("a.zip", {}, "must end in .argosmodel"),
        ("there.argosmodel", {}, "exists already"),
        ("a.argosmodel", {"target": None}, "does not name its languages"),
    ],
)
def test_refusals(tmp_path: Path, name: str, languages: dict[str, None], message: str) -> None:
    (tmp_path / "there.argosmodel").touch()
    model = make(tmp_path / "model", steps=0, **languages)
    with pytest.raises(ModelError, match=message):
        export_argos(model, tmp_path / name)
