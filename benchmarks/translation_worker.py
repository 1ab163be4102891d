"""One system under test in a process of its own: reads orders, translates, tells how long it took.

    python benchmarks/translation_worker.py SYSTEM MODEL CORE[,CORE] < orders > answers

An order is a line of JSON: {"do": "translate", "lines": [...], "beam": 4, "batch": 1024, "is_single": false,
"is_text": true}; the answer has seconds, tokens and outputs. {"do": "memory"} gives the process's size.
"""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

Outputs = tuple[int, list[str]]


def resident() -> int:
    """Return the bytes of memory that this process occupies."""
    for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) * 1024
    return 0


class Transduce:
    """Our own translator in a precision, or in int8 with a shortlist: `int8+shortlist`."""

    def __init__(self, model: str, precision: str, threads: int) -> None:
        precision, _, shortlist = precision.partition("+")
        self.options = {"stop": "full", "shortlist": bool(shortlist)}
        from transduce.translator import Translator

        self.at_import = resident()

        self.translator = Translator.load(model, precision=precision, threads=threads)  # type: ignore[arg-type]

    def translate(self, lines: list[str], order: dict[str, Any]) -> Outputs:
        """Text to text."""
        config = self.translator.configure(beam=order["beam"], **self.options)
        if order["is_single"]:
            found = [self.translator.translate_all([line], config)[0] for line in lines]
        else:
            found = self.translator.translate_all(lines, config)
        return sum(len(one.tokens) for one in found), [one.text for one in found]

    def encode(self, lines: list[str]) -> list[list[int]]:
        """Return what `translate_tokens` takes."""
        return [[*ids, 3] for ids in self.translator.tokenizers.target.encode_all(lines)]

    def translate_tokens(self, encoded: list[list[int]], order: dict[str, Any]) -> Outputs:
        """Tokens to tokens."""
        from transduce.data.padding import pad_ids
        from transduce.decoding.search import search
        from transduce.translator.searching import BATCH_TOKENS

        config = self.translator.configure(beam=order["beam"], **self.options)
        budget = BATCH_TOKENS // order["beam"]
        batches: list[list[list[int]]] = []
        for ids in sorted(encoded, key=len, reverse=True):
            is_full = order["is_single"] or not batches or (len(batches[-1]) + 1) * len(batches[-1][0]) > budget
            batches += [[ids]] if is_full else []
            if not is_full:
                batches[-1].append(ids)
        stepper = self.translator.stepper
        padded = [pad_ids(batch, padding=stepper.source_padding) for batch in batches]
        found = [hypotheses for source_BS in padded for hypotheses in search(stepper, source_BS, config)]
        return sum(len(hypotheses[0].tokens) for hypotheses in found), []


class CTranslate2:
    """CTranslate2 over the exported model, or with its own shortlist, which it chooses for each batch: `int8+vmap`."""

    def __init__(self, model: str, precision: str, threads: int) -> None:
        import ctranslate2
        import sentencepiece

        self.at_import = resident()
        precision, _, vmap = precision.partition("+")
        self.has_vmap = bool(vmap)
        options = {"intra_threads": 1, "inter_threads": threads} if threads > 1 else {"intra_threads": 1}
        self.translator = ctranslate2.Translator(model, compute_type=precision, **options)
        self.processor = sentencepiece.SentencePieceProcessor(model_file=f"{model}/sentencepiece.model")

    def translate(self, lines: list[str], order: dict[str, Any]) -> Outputs:
        """Text to text."""
        tokens, pieces = self._search(self.encode(lines), order)
        return tokens, [self.processor.decode(one) for one in pieces]

    def encode(self, lines: list[str]) -> list[list[str]]:
        """Return what `translate_tokens` takes."""
        encoded: list[list[str]] = self.processor.encode(lines, out_type=str)
        return encoded

    def translate_tokens(self, encoded: list[list[str]], order: dict[str, Any]) -> Outputs:
        """Tokens to tokens."""
        return self._search(encoded, order)[0], []

    def _search(self, encoded: list[list[str]], order: dict[str, Any]) -> tuple[int, list[list[str]]]:
        size, kind = order["batch"][str(order["beam"])]
        batches = [[one] for one in encoded] if order["is_single"] else [encoded]
        pieces: list[list[str]] = []
        for batch in batches:
            longest = max(map(len, batch), default=0) + 51
            found = self.translator.translate_batch(
                batch,
                beam_size=order["beam"],
                length_penalty=0.6,
                max_batch_size=size,
                batch_type=kind,
                max_decoding_length=longest,
                disable_unk=True,
                use_vmap=self.has_vmap,
            )
            pieces += [one.hypotheses[0] for one in found]
        return sum(len(one) + 1 for one in pieces), pieces


class HuggingFace:
    """Transformers' Marian over what benchmarks/translation_models.py wrote for it."""

    def __init__(self, model: str, precision: str, threads: int) -> None:
        import sentencepiece
        import torch
        import transformers
        from safetensors.torch import load_file

        self.at_import = resident()
        torch.set_num_threads(threads)
        dtype = {"bf16": torch.bfloat16, "float32": torch.float32}[precision]
        self.network = transformers.MarianMTModel.from_pretrained(model, dtype=dtype).eval()
        table_TD = load_file(f"{model}/positions.safetensors")["table_TD"]
        for stack in (self.network.model.encoder, self.network.model.decoder):
            stack.embed_positions.weight.data.copy_(table_TD)
        self.processor = sentencepiece.SentencePieceProcessor(model_file=f"{model}/sentencepiece.model")
        self.torch = torch

    def translate(self, lines: list[str], order: dict[str, Any]) -> Outputs:
        """Text to text."""
        tokens, rows = self._search(self.encode(lines), order)
        return tokens, [self.processor.decode(row) for row in rows]

    def encode(self, lines: list[str]) -> list[list[int]]:
        """Return what `translate_tokens` takes."""
        return [[*ids, self.network.config.eos_token_id] for ids in self.processor.encode(lines)]

    def translate_tokens(self, encoded: list[list[int]], order: dict[str, Any]) -> Outputs:
        """Tokens to tokens."""
        return self._search(encoded, order)[0], []

    def _search(self, encoded: list[list[int]], order: dict[str, Any]) -> tuple[int, list[list[int]]]:
        """Translate batches of sentences of like length, which transformers does not make by itself."""
        size = 1 if order["is_single"] else order["batch"][str(order["beam"])][0]
        places = sorted(range(len(encoded)), key=lambda place: len(encoded[place]))
        rows: list[list[int]] = [[]] * len(encoded)
        config = self.network.config
        for begin in range(0, len(places), size):
            some = places[begin : begin + size]
            longest = max(len(encoded[place]) for place in some)
            padded = [encoded[place] + [config.pad_token_id] * (longest - len(encoded[place])) for place in some]
            ids_BS = self.torch.tensor(padded)
            with self.torch.inference_mode():
                found_BT = self.network.generate(
                    input_ids=ids_BS,
                    attention_mask=(ids_BS != config.pad_token_id).long(),
                    num_beams=order["beam"],
                    length_penalty=0.6,
                    early_stopping=order["beam"] > 1,
                    do_sample=False,
                    max_new_tokens=longest + 50,
                )
            for place, row in zip(some, found_BT.tolist(), strict=True):
                tokens = row[1:]  # the first is what decoding starts from
                rows[place] = tokens[: tokens.index(config.eos_token_id)] if config.eos_token_id in tokens else tokens
        return sum(len(row) + 1 for row in rows), rows


WORKERS = {"transduce": Transduce, "ctranslate2": CTranslate2, "huggingface": HuggingFace}


def main() -> None:
    """Load, say so, then follow orders until the input ends."""
    system, model, cores = sys.argv[1:]
    chosen = {int(core) for core in cores.split(",")}
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, chosen)
    kind, _, precision = system.partition(":")
    started = time.perf_counter()
    worker: Any = WORKERS[kind](model, precision, len(chosen))
    ready = {"load_seconds": time.perf_counter() - started, "at_import": worker.at_import, "memory": resident()}
    print(json.dumps(ready), flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        if order["do"] == "memory":
            print(json.dumps({"memory": resident()}), flush=True)
            continue
        lines = order["lines"] if order["is_text"] else worker.encode(order["lines"])
        work = worker.translate if order["is_text"] else worker.translate_tokens
        begin, begin_cpu = time.perf_counter(), time.process_time()
        tokens, outputs = work(lines, order)
        answer = {
            "seconds": time.perf_counter() - begin,
            "processor_seconds": time.process_time() - begin_cpu,
            "tokens": tokens,
            "outputs": outputs,
        }
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
