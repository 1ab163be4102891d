"""Our translation against CTranslate2 and Hugging Face: the same weights, sentences, beam and lengths, in alternation.

    python benchmarks/translation.py [--quick] [--json FILE] [--source MODEL] [--base-8k MODEL] [--base-32k MODEL]
                                     [--models base_8k base_32k small] [--venvs DIR]

Each system runs in a process of its own, pinned to one core (and to two), and is asked in turn; figures are medians of
ratios of neighbouring runs. CTranslate2 runs with the best of its settings, found first: batch size, and AVX2, which it
takes by itself, against AVX-512; so does Hugging Face's Marian, with sentences sorted by length for it. All searches
stop when `beam` hypotheses have finished. "Single" is one sentence after the other. Where the model has a shortlist
(`training.shortlist`), it is translated with that too, against CTranslate2 as it was and with the same lists in its own
form, which it joins for each batch. In FILE, `base_32k` is with the shortlist if that costs at most 0.1 BLEU;
`without_shortlist` then has the other ratios.

Without `--base-8k` a model is made of `--source`, a small trained one (the bundled one if none is given), by
benchmarks/models.py: widened, so that it says what the small one says. Without `--base-32k` the same gets 24,000 pieces
that occur in no text. Marian takes part where the network is post-norm, the only kind it has. Both systems are also
compared while limited to AVX2. results/translation.json and results/translation.md are written next to this file; with
--models, those parts of them are renewed. --quick leaves out all but int8 on one core against CTranslate2, and takes
under ten minutes. benchmarks/translation_stream.py translates a million lines.
"""

import argparse
import datetime
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import sacrebleu
from translation_models import SIZES, make_models, test_sentences, write_marian, write_vmap
from translation_report import report

from transduce.export.ctranslate2 import export_ctranslate2
from transduce.machine import available_cores, processor_name
from transduce.model_directory import SHORTLIST, load_model

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "peers"))

from environments import python_of  # noqa: E402

KINDS = {
    "beam4_batched": (4, False),
    "greedy_batched": (1, False),
    "beam4_single": (4, True),
    "greedy_single": (1, True),
}
AVX2 = {"TRANSDUCE_INSTRUCTIONS": "avx2", "CT2_FORCE_CPU_ISA": "AVX2", "ONEDNN_MAX_CPU_ISA": "AVX2"}
BATCHES = ((32, "examples"), (64, "examples"), (1024, "tokens"), (2048, "tokens"), (4096, "tokens"))
BLEU_OF_A_SHORTLIST = 0.1  # what it may cost
Answer = dict[str, Any]


class System:
    """A worker process and what it said when it was ready."""

    def __init__(
        self,
        name: str,
        model: Path,
        *,
        cores: str,
        environment: dict[str, str] | None = None,
        python: Path = Path(sys.executable),
    ) -> None:
        count = str(len(cores.split(",")))
        self.name = name
        self.batch: dict[int, tuple[int, str]] = {1: BATCHES[0], 4: BATCHES[0]}
        self._process = subprocess.Popen(
            [str(python), str(HERE / "translation_worker.py"), name, str(model), cores],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            env={**os.environ, "OMP_NUM_THREADS": count, **(environment or {})},
        )
        self.ready = self._answer()

    def translate(self, lines: list[str], *, beam: int, is_single: bool = False, is_text: bool = True) -> Answer:
        """Return seconds, tokens and outputs."""
        order = {"beam": beam, "batch": self.batch, "is_single": is_single, "is_text": is_text, "lines": lines}
        return self._ask({"do": "translate", **order})

    def memory(self) -> int:
        """Return what it occupies now."""
        return int(self._ask({"do": "memory"})["memory"])

    def close(self) -> None:
        """End it."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def _ask(self, order: Answer) -> Answer:
        assert self._process.stdin is not None
        print(json.dumps(order), file=self._process.stdin, flush=True)
        return self._answer()

    def _answer(self) -> Answer:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"{self.name} ended unexpectedly")
        answer: Answer = json.loads(line)
        return answer


@contextmanager
def running(name: str, model: Path, **options: Any) -> Iterator[System]:  # noqa: ANN401
    """Run a system for a while."""
    system = System(name, model, **options)
    try:
        yield system
    finally:
        system.close()


def best_ctranslate2(
    stack: ExitStack,
    model: Path,
    lines: list[str],
    *,
    cores: str,
    precision: str,
    environments: tuple[dict[str, str], ...] = ({}, {"CT2_FORCE_CPU_ISA": "AVX512"}),
) -> System:
    """Return CTranslate2 with the fastest of its settings on these lines."""
    systems = []
    for environment in environments:
        name = f"ctranslate2:{precision}"
        system = stack.enter_context(running(name, model, cores=cores, environment=environment))
        systems.append((keep_fastest_batches(system, lines, BATCHES), system))
    return min(systems, key=lambda one: one[0])[1]


def best_huggingface(stack: ExitStack, model: Path, lines: list[str], *, cores: str, venvs: Path) -> System:
    """Return Hugging Face's Marian in the faster of its precisions here, with the fastest batches on these lines."""
    systems = []
    for precision in ("bf16", "float32"):
        python = python_of("huggingface", venvs)
        system = stack.enter_context(running(f"huggingface:{precision}", model, cores=cores, python=python))
        systems.append(
            (keep_fastest_batches(system, lines, ((16, "examples"), (32, "examples"), (64, "examples"))), system)
        )
    return min(systems, key=lambda one: one[0])[1]


def keep_fastest_batches(system: System, lines: list[str], batches: tuple[tuple[int, str], ...]) -> float:
    """Let a system keep the fastest of these batches, for greedy search and for a beam; return the seconds of both."""
    system.translate(lines[:8], beam=4)
    total = 0.0
    for beam in (1, 4):
        found = []
        for batch in batches:
            system.batch[beam] = batch
            found.append((system.translate(lines, beam=beam)["seconds"], batch))
        seconds, system.batch[beam] = min(found)
        total += seconds
    return total


def compare(ours: System, theirs: System, lines: list[str], *, rounds: int, is_text: bool, singles: int) -> Answer:
    """Return, for each kind of work, both speeds and the median ratio of neighbouring runs."""
    results: Answer = {}
    for kind, (beam, is_single) in KINDS.items():
        some = lines[:: max(1, len(lines) // singles)][:singles] if is_single else lines
        options = {"beam": beam, "is_single": is_single, "is_text": is_text}
        for system in (ours, theirs):
            system.translate(some[:4], **options)
        pairs = [(ours.translate(some, **options), theirs.translate(some, **options)) for _ in range(rounds)]
        results[kind] = {
            "ratio": statistics.median(their["seconds"] / our["seconds"] for our, their in pairs),
            "ours_tokens_per_second": statistics.median(our["tokens"] / our["seconds"] for our, _ in pairs),
            "theirs_tokens_per_second": statistics.median(their["tokens"] / their["seconds"] for _, their in pairs),
        }
        print(f"  {kind}: {results[kind]['ratio']:.2f}", flush=True)
    return results


def quality(system: System, lines: list[str], references: list[str], exact: list[str] | None) -> Answer:
    """Return BLEU, and how many outputs equal those of float32."""
    answer = system.translate(lines, beam=4)
    outputs = answer["outputs"]
    score = sacrebleu.corpus_bleu(outputs, [references], lowercase=False).score
    same = None if exact is None else sum(a == b for a, b in zip(outputs, exact, strict=True)) / len(lines)
    return {
        "bleu": score,
        "same_as_float32": same,
        "tokens_per_second": answer["tokens"] / answer["seconds"],
        "memory_mb": system.memory() / 1e6,
        "memory_above_import_mb": (system.memory() - system.ready["at_import"]) / 1e6,
        "load_seconds": system.ready["load_seconds"],
        "outputs": outputs,
    }


def measure(name: str, model: Path, test: tuple[list[str], list[str]], arguments: argparse.Namespace) -> Answer:
    """Return all figures of one model."""
    lines, references = test
    results: Answer = {}
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        exported = {precision: Path(folder) / precision for precision in ("int8", "float32")}
        for precision, there in exported.items():
            if precision == "int8" or not arguments.quick:
                export_ctranslate2(load_model(model), there, weights=precision)  # type: ignore[arg-type]
        core = str(arguments.core)
        ours = stack.enter_context(running("transduce:int8", model, cores=core))
        theirs = best_ctranslate2(stack, exported["int8"], lines[:96], cores=core, precision="int8")
        print(f"{name}, one core, CTranslate2 with batches of {theirs.batch}", flush=True)
        sample = lines[: arguments.sentences]
        options = {"rounds": arguments.rounds, "singles": arguments.singles}
        results["one_core"] = compare(ours, theirs, sample, is_text=True, **options)
        results["ctranslate2_batch"] = theirs.batch
        results["one_core_avx2"] = _compare_with_avx2(model, exported["int8"], lines, arguments)
        scored = (sample, references[: arguments.sentences]) if arguments.quick else test
        exact = quality(ours, *scored, None)
        results["systems"] = {"transduce int8": exact, "ctranslate2 int8": quality(theirs, *scored, None)}
        if (model / SHORTLIST).is_file() and not arguments.quick:
            _measure_shortlist(results, model, exported["int8"], theirs, test, arguments)
        for label, figures in results["systems"].items():
            print(f"  {label}: {figures['memory_above_import_mb']:.0f} MB above import, BLEU {figures['bleu']:.2f}")
        if not arguments.quick:
            results["one_core_tokens_only"] = compare(ours, theirs, sample, is_text=False, **options)
            _measure_more(results, model, exported, test, arguments)
    for system in results["systems"].values():
        system.pop("outputs")
    return results


def _compare_with_avx2(model: Path, exported: Path, lines: list[str], arguments: argparse.Namespace) -> Answer:
    """Return the ratios when both use AVX2 and nothing newer; oneDNN has a setting of its own."""
    core = str(arguments.core)
    with ExitStack() as stack:
        ours = stack.enter_context(running("transduce:int8", model, cores=core, environment=AVX2))
        theirs = best_ctranslate2(stack, exported, lines[:96], cores=core, precision="int8", environments=(AVX2,))
        print("both limited to AVX2", flush=True)
        options = {"rounds": arguments.rounds, "singles": arguments.singles}
        return compare(ours, theirs, lines[: arguments.sentences], is_text=True, **options)


def _measure_shortlist(
    results: Answer,
    model: Path,
    exported: Path,
    theirs: System,
    test: tuple[list[str], list[str]],
    arguments: argparse.Namespace,
) -> None:
    """Add ours with each sentence's list, against theirs without lists and with."""
    lines, references = test
    sample, core = lines[: arguments.sentences], str(arguments.core)
    options: Answer = {"rounds": arguments.rounds, "singles": arguments.singles, "is_text": True}
    with ExitStack() as stack:
        ours = stack.enter_context(running("transduce:int8+shortlist", model, cores=core))
        results["one_core_shortlist"] = compare(ours, theirs, sample, **options)
        results["systems"]["transduce int8+shortlist"] = quality(ours, lines, references, None)
        write_vmap(load_model(model), exported)
        listed = best_ctranslate2(stack, exported, lines[:96], cores=core, precision="int8+vmap")
        results["one_core_both_shortlists"] = compare(ours, listed, sample, **options)
        results["systems"]["ctranslate2 int8+vmap"] = quality(listed, lines, references, None)


def counted(name: str, figures: Answer) -> str:
    """Return which ratios count for a model: a shortlist's at V 32,000, where BLEU hardly falls with it."""
    systems = figures["systems"]
    if name != "base_32k" or "one_core_shortlist" not in figures:
        return "one_core"
    lost = systems["transduce int8"]["bleu"] - systems["transduce int8+shortlist"]["bleu"]
    return "one_core_shortlist" if lost <= BLEU_OF_A_SHORTLIST else "one_core"


def _measure_more(
    results: Answer,
    model: Path,
    exported: dict[str, Path],
    test: tuple[list[str], list[str]],
    arguments: argparse.Namespace,
) -> None:
    """Add the other precisions, two cores, and Hugging Face where it has a place for the network."""
    lines, references = test
    core = str(arguments.core)
    with ExitStack() as stack:
        exact = quality(stack.enter_context(running("transduce:float32", model, cores=core)), lines, references, None)
        results["systems"]["transduce float32"] = exact
        for own in list(results["systems"]):
            if own == "transduce float32":
                continue
            outputs = results["systems"][own]["outputs"]
            same = sum(a == b for a, b in zip(outputs, exact["outputs"], strict=True))
            results["systems"][own]["same_as_float32"] = same / len(lines)
        for name, where in (("transduce:bf16", model), ("ctranslate2:float32", exported["float32"])):
            system = stack.enter_context(running(name, where, cores=core))
            label = name.replace(":", " ")
            results["systems"][label] = quality(system, lines, references, exact["outputs"])
    if available_cores() > 1:
        with ExitStack() as stack:
            ours = stack.enter_context(running("transduce:int8", model, cores="0,1"))
            theirs = best_ctranslate2(stack, exported["int8"], lines[:96], cores="0,1", precision="int8")
            options = {"rounds": arguments.rounds, "singles": arguments.singles}
            results["two_cores"] = compare(ours, theirs, lines[: arguments.sentences], is_text=True, **options)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        marian = Path(folder) / "marian"
        if write_marian(load_model(model), marian):
            ours = stack.enter_context(running("transduce:int8", model, cores=core))
            theirs = best_huggingface(stack, marian, lines[:64], cores=core, venvs=arguments.venvs)
            print(f"Hugging Face, {theirs.name}, batches of {theirs.batch}", flush=True)
            options = {"rounds": arguments.rounds, "singles": arguments.singles}
            results["huggingface"] = compare(ours, theirs, lines[: arguments.sentences], is_text=True, **options)
            results["systems"][theirs.name.replace(":", " ")] = quality(theirs, lines, references, exact["outputs"])


def cold_start(model: Path) -> float:
    """Return the median seconds of a whole `transduce translate --text`, from the shell and back."""
    import time

    command = [sys.executable, "-m", "transduce", "translate", str(model), "--text", "A dog runs.", "--threads", "1"]
    seconds = []
    for _ in range(4):
        begin = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        seconds.append(time.perf_counter() - begin)
    return statistics.median(seconds[1:])


def main() -> None:
    """Read the command line, measure, write the results."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--quick", action="store_true", help="int8 on one core alone, against CTranslate2: under ten minutes"
    )
    parser.add_argument("--json", type=Path, help="write the ratios to this file")
    parser.add_argument("--source", help="a small trained model to make base models of")
    parser.add_argument("--base-8k", help="a trained model of base size, V 8,000")
    parser.add_argument("--base-32k", help="a trained model of base size, V 32,000")
    parser.add_argument("--test", type=Path, help="a TSV of test sentences and their references")
    parser.add_argument("--sentences", type=int, default=256, help="how many are timed")
    parser.add_argument("--singles", type=int, default=24, help="how many are timed one by one")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--core", type=int, default=0)
    parser.add_argument("--models", nargs="+", choices=[*SIZES, "small"], help="which; default: all")
    parser.add_argument("--venvs", type=Path, default=Path.home() / ".cache" / "transduce-peers")
    arguments = parser.parse_args()
    page = HERE / "results" / "translation.json"
    kept = json.loads(page.read_text(encoding="utf-8")) if arguments.models and page.is_file() else {}
    results: Answer = {
        "date": datetime.date.today().isoformat(),
        "processor": processor_name(),
        "python": platform.python_version(),
        "load": os.getloadavg()[0],
        "rounds": arguments.rounds,
        "is_quick": arguments.quick,
        "models": kept.get("models", {}),
    }
    with tempfile.TemporaryDirectory() as folder:
        paths, weights = make_models(arguments, Path(folder))
        results["weights"] = {**kept.get("weights", {}), **weights}
        lines, references = test_sentences(arguments)
        results["sentences"] = min(len(lines), arguments.sentences)
        for name, path in sorted(paths.items(), reverse=True):  # the small one first
            if arguments.models is None or name in arguments.models:
                results["models"][name] = measure(name, path, (lines, references), arguments)
        results["cold_start_seconds"] = cold_start(paths["small"])
    ratios: Answer = {"without_shortlist": {}}
    for name, figures in results["models"].items():
        which = counted(name, figures)
        ratios[name] = {kind: found["ratio"] for kind, found in figures[which].items()}
        ratios[f"{name}_avx2"] = {kind: found["ratio"] for kind, found in figures["one_core_avx2"].items()}
        if which != "one_core":
            plain = {kind: found["ratio"] for kind, found in figures["one_core"].items()}
            ratios["without_shortlist"][name] = plain
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(ratios, indent=2) + "\n", encoding="utf-8")
    page.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    page.with_suffix(".md").write_text(report(results), encoding="utf-8")
    print(json.dumps(ratios, indent=2))


if __name__ == "__main__":
    main()
