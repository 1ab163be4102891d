"""What one core can multiply: the most operations a second that torch's matrix product reaches, for the same run.

    python products.py {bf16|float32}

Tries the shapes that training a base model multiplies and square ones, and answers each request with the best of
them: the peak that utilisation is measured against.
"""

import json
import sys
import time

from rounds import one_core

one_core()

import torch  # noqa: E402 - after the core is chosen

SHAPES = ((1024, 1024, 1024), (2048, 2048, 2048), (4096, 512, 2048), (4096, 2048, 512), (4096, 512, 512))


def rate(rows: int, inner: int, columns: int, *, dtype: torch.dtype) -> float:
    """Return the operations a second of (rows x inner) @ (inner x columns)."""
    left, right = torch.randn(rows, inner, dtype=dtype), torch.randn(inner, columns, dtype=dtype)
    out = torch.empty(rows, columns, dtype=dtype)
    torch.mm(left, right, out=out)
    best, started = 0.0, time.perf_counter()
    while time.perf_counter() - started < 0.25:
        before = time.process_time()
        torch.mm(left, right, out=out)
        best = max(best, 2.0 * rows * inner * columns / (time.process_time() - before))
    return best


def main(precision: str) -> None:
    """Answer each line of standard input with the operations a second of every shape."""
    torch.set_num_threads(1)
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    print(json.dumps({"ready": True}), flush=True)
    for _ in sys.stdin:
        rates = {"x".join(map(str, shape)): rate(*shape, dtype=dtype) for shape in SHAPES}
        print(json.dumps({"operations_per_second": max(rates.values()), "by_shape": rates}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
