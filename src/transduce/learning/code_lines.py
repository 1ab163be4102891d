"""Lines of this package that the learning page quotes, read from the source when the page is made.

Each is named by its file and by what it begins with, so the page shows the line as it is now, with its number. If
the line is gone, making the page fails, and so does a test.
"""

from importlib.resources import files as package_files

QUOTED = {
    "attend": ("model/attention.py", "scores_BHQK = query_BHQE @ key_BHKE.mT * scale"),
    "scale": ("model/attention.py", "scale = 1.0 / math.sqrt(query_BHQE.size(-1))"),
    "softmax": ("model/attention.py", "exponentials = (scores - scores.amax("),
    "mask": ("model/attention.py", "scores_BHQK = scores_BHQK.masked_fill(~visible_BHQK"),
    "causal": ("model/masks.py", "return torch.ones(length, length"),
    "weighted": ("model/attention.py", "return weights_BHQK @ value_BHKG"),
    "heads": ("model/attention.py", "mixed: Tensor = self.W_O("),
    "ablation": ("networks/attention_sublayer.py", "by_head[..., head, :] = 0.0"),
    "penalty": ("decoding/length_penalty.py", "penalty: float | NDArray[np.floating] = "),
    "finished": ("decoding/beam_search.py", "scores_BC = ended.log_probabilities_BK / length_penalty("),
    "bleu": ("evaluation/protocols.py", "bleu = BLEU("),
}
"""By name: a file of the package, and how the line begins."""


def quoted_lines() -> dict[str, dict[str, str | int]]:
    """Return each quoted line: its file, its number and its text."""
    return {name: _found(path, beginning) for name, (path, beginning) in QUOTED.items()}


def _found(path: str, beginning: str) -> dict[str, str | int]:
    lines = (package_files("transduce") / path).read_text(encoding="utf-8").splitlines()
    found = [number for number, line in enumerate(lines, start=1) if line.strip().startswith(beginning)]
    assert found, f"no line of {path} begins with {beginning!r}: say in learning/code_lines.py how it begins now"
    return {"path": f"transduce/{path}", "line": found[0], "text": lines[found[0] - 1].strip()}
