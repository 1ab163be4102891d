"""Our translation with imported models beside other programs: the same weights, sentences, beam and lengths, in turn.

    taskset -c 1 python benchmarks/imported.py [--rounds 7] [--sentences 64] [--tiny] [--json FILE]

An OPUS-MT sized model (6+6 layers, width 512, 58,000 pieces) in the format of Hugging Face, against CTranslate2 in int8
and transformers; and a student as Firefox has them (6+2 layers, width 256, an SSRU in the decoder, 32,000 pieces, a
shortlist of 100 candidates a piece and 100 common ones) in the format of Marian, against pymarian with the same
shortlist. All in one process, with one thread, beam 4 and in batches; ours and CTranslate2 take the fastest of a few
batch sizes. Weights are random, and the end token is forbidden, so that all outputs have the same length: times do not
depend on what weights say. Figures are medians of the ratios of neighbouring runs, in output tokens a second of
processor time, which other programs on the machine change little.

pymarian computes in float32, since its build has no int8 for the processor; the lead over Firefox's fork is not known.
Needs ctranslate2, transformers and pymarian. Writes results/imported.json unless --json names another file. --tiny is
a trial of the script: its figures mean nothing.
"""

import os

os.environ.update({"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"})

import argparse
import datetime
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import ctranslate2
import models
import numpy as np
import pymarian
import torch
import transformers

from transduce.data.shortlist import Shortlist
from transduce.demo.corpus import corpus
from transduce.export.ctranslate2 import export_ctranslate2
from transduce.export.firefox import export_firefox
from transduce.export.huggingface import export_huggingface
from transduce.importing.formats import import_model
from transduce.machine import processor_name
from transduce.model import ModelConfig, Transformer
from transduce.model_directory import Description, Languages, ModelDirectory, find_model, load_model, save_model
from transduce.text.tokenizer_pair import TokenizerPair
from transduce.translator import Translator

LENGTH, BEAM, NEVER = 24, 4, -1e9
BATCHES = (16, 32, 64, 128)  # sentences; ours and the batches of CTranslate2 and pymarian are found by trial
LANGUAGES = Languages(source="en", target="de")
COMMON = {"attention_bias": True, "output_bias": True, "dropout": 0.0}
OPUS = {**COMMON, "d_model": 512, "heads": 8, "d_ff": 2048, "layers": 6, "positions": "sinusoidal_halves"}
OPUS |= {"activation": "silu", "norm_epsilon": 1e-5}
STUDENT = {**COMMON, "d_model": 256, "heads": 8, "d_ff": 1536, "encoder_layers": 6, "decoder_layers": 2}
STUDENT |= {"positions": "concatenated", "start_from_zeros": True, "decoder_mixer": "ssru"}
TINY = {"d_model": 64, "heads": 4, "d_ff": 64, "layers": 1, "encoder_layers": 1, "decoder_layers": 1}
Run = Callable[[], int]
"""Translate all sentences once, and return the number of output tokens."""


def random_model(folder: Path, options: dict[str, object], *, pieces: int, has_shortlist: bool) -> ModelDirectory:
    """Write a model with random weights that never ends a sentence."""
    tokenizer, _ = models.with_fillers(load_model(find_model("en-de")), pieces)
    torch.manual_seed(1)
    network = Transformer(ModelConfig.model_validate({"vocabulary_size": pieces, **options}))
    weights = dict(network.named_parameters())
    special = tokenizer.special
    with torch.no_grad():
        weights["embeddings.output_bias_V"][list(special.ids)] = NEVER
    random = np.random.default_rng(1)
    shortlist = Shortlist(
        common_C=np.arange(8, 108, dtype=np.int32),
        candidates_VK=random.integers(108, pieces, (pieces, 100), dtype=np.int32),
        special=special,
        copies_sources=True,
    )
    description = Description(
        architecture=network.config, languages=LANGUAGES, decoding={"shortlist": True} if has_shortlist else {}
    )
    own = shortlist if has_shortlist else None
    save_model(folder, description, weights, tokenizers=TokenizerPair.shared(tokenizer), card="", shortlist=own)
    return load_model(folder)


def sources(model: ModelDirectory, count: int) -> list[str]:
    """Return texts of about LENGTH pieces each."""
    tokenizer = model.tokenizers.target
    ids = [token for text, _ in corpus(pairs=1).test for token in tokenizer.encode(text)]
    ids = ids * (1 + count * LENGTH // len(ids))
    return [tokenizer.decode(ids[n * LENGTH : (n + 1) * LENGTH]).replace(".", ",") for n in range(count)]


def imported(folder: Path, destination: Path) -> tuple[ModelDirectory, float]:
    """Return the model, imported, and the processor time that it took."""
    began = time.process_time()
    import_model(folder, destination, LANGUAGES)
    return load_model(destination), time.process_time() - began


def ours(folder: Path, texts: list[str]) -> Run:
    """Return our translation."""
    translator = Translator.load(folder, precision="int8", threads=1)
    config = translator.configure(beam=BEAM, maximum_length=LENGTH, stop="full", keep_placeholders="off")

    def run() -> int:
        found = translator.translate_all(texts, config)
        return sum(len(own.alternatives[0].sentences[0].tokens) for own in found)

    return run


def theirs_of_ctranslate2(folder: Path, tokens: list[list[str]], batch: int) -> Run:
    """Return CTranslate2's translation of pieces in int8."""
    translator = ctranslate2.Translator(str(folder), compute_type="int8", inter_threads=1, intra_threads=1)

    def run() -> int:
        found = translator.translate_batch(
            tokens, beam_size=BEAM, max_decoding_length=LENGTH, max_batch_size=batch, disable_unk=True
        )
        return sum(len(own.hypotheses[0]) for own in found)

    return run


def theirs_of_transformers(folder: Path, ids: list[list[int]], batch: int) -> Run:
    """Return transformers' translation of ids in float32."""
    torch.set_num_threads(1)
    network = transformers.MarianMTModel.from_pretrained(folder).eval()
    padding = network.config.pad_token_id

    def run() -> int:
        count = 0
        for first in range(0, len(ids), batch):
            own = ids[first : first + batch]
            longest = max(map(len, own))
            rows = torch.tensor([row + [padding] * (longest - len(row)) for row in own])
            made = network.generate(
                input_ids=rows, attention_mask=(rows != padding).long(), num_beams=BEAM, do_sample=False,
                max_new_tokens=LENGTH, forced_eos_token_id=None, early_stopping=False,
            )  # fmt: skip
            count += made[:, 1:].numel()
        return count

    return run


def theirs_of_marian(folder: Path, texts: list[str], batch: int) -> Run:
    """Return pymarian's translation with the shortlist."""
    vocabulary, shortlist = next(folder.glob("*.spm")), next(folder.glob("lex*.bin"))
    translator = pymarian.Translator(
        f"--models {folder}/model.ende.bin --vocabs {vocabulary} {vocabulary} --cpu-threads 1 --workspace 512 --quiet "
        f"--beam-size {BEAM} --max-length-factor 1 --mini-batch {batch} --maxi-batch 100 --no-spm-decode "
        f"--shortlist {shortlist} false"
    )

    def run() -> int:
        return sum(len(line.split()) for line in translator.translate("\n".join(texts)).splitlines())

    return run


def best(make: Callable[[int], Run]) -> tuple[Run, int]:
    """Return the fastest of the batch sizes."""
    runs = {batch: make(batch) for batch in BATCHES}
    chosen = min(BATCHES, key=lambda batch: min(timed(runs[batch]) for _ in range(2)))
    return runs[chosen], chosen


def timed(run: Run) -> float:
    """Return the seconds of processor time per output token."""
    began = time.process_time()
    count = run()
    return (time.process_time() - began) / count


def compared(own: Run, other: Run, rounds: int) -> dict[str, object]:
    """Return how many times as fast ours is, both speeds, medians over runs in turn, and the tokens of a run."""
    counts = own(), other()
    times = [(timed(own), timed(other)) for _ in range(rounds)]
    speeds = [1 / statistics.median(column) for column in zip(*times, strict=True)]
    ratio = statistics.median(theirs / mine for mine, theirs in times)
    return {"ratio": round(ratio, 3), "ours": round(speeds[0], 1), "theirs": round(speeds[1], 1), "tokens": counts}


def opus(folder: Path, arguments: argparse.Namespace) -> dict[str, object]:
    """Compare on a model of OPUS-MT's size."""
    pieces = 9_000 if arguments.tiny else 58_000
    made = random_model(
        folder / "made", {**OPUS, **(TINY if arguments.tiny else {})}, pieces=pieces, has_shortlist=False
    )
    export_huggingface(made, folder / "opus")
    model, seconds = imported(folder / "opus", folder / "model")
    export_ctranslate2(model, folder / "ct2", weights="int8")
    texts = sources(model, arguments.sentences)
    ids = [model.tokenizers.encode_source(text) for text in texts]
    tokens = [[model.tokenizers.source.piece(token) for token in row[:-1]] for row in ids]
    mine = ours(folder / "model", texts)
    fast, batch = best(lambda size: theirs_of_ctranslate2(folder / "ct2", tokens, size))
    slow = theirs_of_transformers(folder / "opus", ids, 32)
    return {
        "import_seconds": round(seconds, 1),
        "ctranslate2_batch": batch,
        "against_ctranslate2": compared(mine, fast, arguments.rounds),
        "against_transformers": compared(mine, slow, 1 if arguments.tiny else 3),
    }


def student(folder: Path, arguments: argparse.Namespace) -> dict[str, object]:
    """Compare on a student of Firefox's size."""
    pieces = 9_000 if arguments.tiny else 32_000
    options = {**STUDENT, **(TINY if arguments.tiny else {})}
    made = random_model(folder / "small", options, pieces=pieces, has_shortlist=True)
    export_firefox(made, folder / "marian", weights="float32")
    model, seconds = imported(folder / "marian", folder / "student")
    texts = sources(model, arguments.sentences)
    mine = ours(folder / "student", texts)
    other, batch = best(lambda size: theirs_of_marian(folder / "marian", texts, size))
    return {
        "import_seconds": round(seconds, 1),
        "marian_batch": batch,
        "against_marian": compared(mine, other, arguments.rounds),
    }


def main() -> None:
    """Run both comparisons and write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--sentences", type=int, default=64)
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--json", type=Path, default=Path(__file__).parent / "results" / "imported.json")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        found = {"opus": opus(Path(place), arguments), "student": student(Path(place), arguments)}
    versions = {one.__name__: one.__version__ for one in (ctranslate2, transformers)}
    about = {"date": datetime.date.today().isoformat(), "processor": processor_name(), "versions": versions}
    text = json.dumps({**about, "is_tiny": arguments.tiny, **found}, indent=2)
    arguments.json.write_text(text + "\n", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
