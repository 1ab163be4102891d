"""Tokens per second of generation, with the same weights of GPT-2's smallest size, beside transformers.

    pip install transformers
    python benchmarks/generation.py [--rounds 9] [--prompt 64] [--tokens 64]

The weights are random, which changes nothing in the arithmetic. Both write greedily from the same prompt, the programs
in turn in one process, on one thread, with keys and values kept; the prompt's pass counts. Seconds are those of the
processor, so that other programs count less. The figure is the median of the rounds, and the ratio that of each
round's two neighbours. Ours runs as `transduce generate --temperature 0` runs it, in int8, and again in float32. Writes
results/generation.json and results/generation.md.
"""

import argparse
import datetime
import json
import os
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
import transformers
from transformers import GPT2Config, GPT2LMHeadModel

from transduce.decoding.generation import GenerationConfig, generate_tokens
from transduce.engine import FrozenLanguageModel
from transduce.importing.gpt2 import renamed_weights
from transduce.model.language_model_config import LanguageModelConfig
from transduce.special_tokens import SpecialTokens

HERE = Path(__file__).parent
PIECES = 50_257


def networks() -> tuple[GPT2LMHeadModel, dict[str, FrozenLanguageModel]]:
    """Return transformers' network, and ours by precision with the same weights."""
    torch.manual_seed(1)
    theirs = GPT2LMHeadModel(GPT2Config()).eval()
    found = {name: tensor.detach().numpy() for name, tensor in theirs.transformer.named_parameters()}
    renamed, is_tied = renamed_weights(found, Path("GPT-2"))
    weights = {name: np.ascontiguousarray(array) for name, array in renamed.items()}
    config = LanguageModelConfig(vocabulary_size=PIECES + 1, tied=is_tied, output_bias=True)
    tokens = SpecialTokens(padding=PIECES, unknown=PIECES, start=PIECES - 1, end=PIECES - 1)
    precisions = ("int8", "float32")
    return theirs, {name: FrozenLanguageModel(weights, config, tokens, precision=name) for name in precisions}


def seconds(work: Callable[[], list[int]], *, tokens: int) -> tuple[float, list[int]]:
    """Return the processor time of some work, and the tokens that it wrote."""
    start = time.process_time()
    found = work()
    taken = time.process_time() - start
    assert len(found) == tokens, f"{len(found)} tokens were written instead of {tokens}"
    return taken, found


def measured(arguments: argparse.Namespace) -> dict[str, list[float]]:
    """Return the tokens per second of each round by program."""
    theirs, ours = networks()
    prompt = [1 + 7 * number % 50_000 for number in range(arguments.prompt)]
    asked = GenerationConfig(tokens=arguments.tokens, temperature=0)

    def by_transformers() -> list[int]:
        end = {"pad_token_id": 0, "eos_token_id": None}
        read = torch.tensor([prompt])
        with torch.no_grad():
            output = theirs.generate(
                read, attention_mask=torch.ones_like(read), do_sample=False, max_new_tokens=arguments.tokens, **end
            )
        return output[0, len(prompt) :].tolist()

    works: dict[str, Callable[[], list[int]]] = {"transformers, float32": by_transformers}
    for name, network in ours.items():
        works[f"transduce, {name}"] = lambda network=network: list(generate_tokens(network, prompt, asked))
    written = {name: seconds(work, tokens=arguments.tokens)[1] for name, work in works.items()}  # also warms up
    same = zip(written["transduce, float32"], written["transformers, float32"], strict=True)
    assert all(own == other for own, other in list(same)[:8]), f"the networks differ: {written}"
    rates: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(arguments.rounds):
        for name, work in works.items():
            rates[name].append(arguments.tokens / seconds(work, tokens=arguments.tokens)[0])
    return rates


def main() -> None:
    """Measure, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--prompt", type=int, default=64)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--output", type=Path, default=HERE / "results")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    rates = measured(arguments)
    base, *others = rates
    ratios = {
        name: statistics.median(own / their for own, their in zip(rates[name], rates[base], strict=True))
        for name in others
    }
    rows = [
        f"| {name} | {statistics.median(own):.1f} | {min(own):.1f} to {max(own):.1f} | {ratios.get(name, 1.0):.2f} × |"
        for name, own in rates.items()
    ]
    content = {
        "date": datetime.datetime.now(tz=datetime.UTC).isoformat(timespec="minutes"),
        "machine": f"{platform.machine()}, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}",
        "versions": {"torch": torch.__version__, "transformers": transformers.__version__},
        "prompt": arguments.prompt,
        "tokens": arguments.tokens,
        "tokens per second": rates,
        "ratio to transformers": ratios,
    }
    table = "\n".join(
        ["| | tokens per processor second | from … to | beside transformers |", "|---|---|---|---|", *rows]
    )
    page = (
        f"# Generation with GPT-2's smallest size\n\n{content['date']}, {content['machine']}, transformers "
        f"{transformers.__version__}, torch {torch.__version__}, one thread; a prompt of {arguments.prompt} tokens, "
        f"{arguments.tokens} tokens written greedily, {arguments.rounds} rounds in turn.\n\n"
        f"{table}\n\nAgain: `python benchmarks/generation.py`.\n"
    )
    arguments.output.mkdir(exist_ok=True)
    (arguments.output / "generation.json").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    (arguments.output / "generation.md").write_text(page, encoding="utf-8")
    print(page)


if __name__ == "__main__":
    main()
