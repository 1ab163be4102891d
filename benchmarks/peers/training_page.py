"""The page that the training benchmark writes."""

from typing import Any

# Measured on 2026-11-15 on a machine of the same kind, each patched to install; target tokens per processor second.
QUOTED = """
Quoted, not measured here: systems that cannot be installed unpatched on this Python, as they ran on 2026-11-15 on a
machine of the same kind (target tokens per processor second, small / base): fairseq 0.12.2 1,315 / 253,
OpenNMT-py 3.5.1 1,161 / 235, Sockeye 3.1.34 1,036 / 195. Eole 0.6.4 (1,145 / 219) and JoeyNMT 2.3.0 (505 / 112) have no
runner in this benchmark yet.
"""


def page(result: dict[str, Any], *, names: Any) -> str:  # noqa: ANN401 - what is not in the result was left out
    """Return the results in words and tables."""
    computer = result["machine"]
    setting = (
        f"{result['corpus']}, 8,000 pieces, batches of 4,096 tokens, label smoothing 0.1, dropout 0.1, Adam; one core, "
        f"in turns, medians of {result['rounds']} rounds, target tokens per second of processor time. "
        f"{computer['date']}, {computer['processor']}, Python {computer['python']}, load average "
        f"{computer['load_average']:.1f}. Utilisation counts the matrix products of tokens, none of padding, against "
        "the fastest bf16 product measured between the rounds."
    )
    columns = ("model", "against the fastest peer", "against Hugging Face, bf16, as it comes", "of the GEMM peak")
    lines = ["# Training speed", "", setting, "", f"| {' | '.join(columns)} | memory against the leanest peer |"]
    lines.append("|---|---|---|---|---|")
    for size, found in result["ratios"].items():
        lines.append(
            f"| {size} | {found['against_fastest_peer']:.2f} × ({found['fastest_peer']}) "
            f"| {found['against_hugging_face_as_it_comes']:.2f} × | {found['of_gemm_peak']:.1%} of "
            f"{found['gemm_peak_gflops']:.0f} GFLOP/s | {found['memory_of_leanest_peer']:.0%} |"
        )
    for size, found in result["ratios"].items():
        lines += ["", f"## {size}", "", "| system | tokens/s | ours against it | of the GEMM peak | peak memory, MB |"]
        lines += ["|---|---|---|---|---|"]
        ours = found["systems"]["transduce, bf16"]["tokens_per_second"]
        for name, each in sorted(found["systems"].items(), key=lambda item: -item[1]["tokens_per_second"]):
            share = f"{each['of_gemm_peak']:.1%}" if "of_gemm_peak" in each else ""
            lines.append(
                f"| {name} | {each['tokens_per_second']:,.0f} | {ours / each['tokens_per_second']:.2f} × | {share} "
                f"| {each['peak_memory_mb']:,.0f} |"
            )
    missing = [name for name in names if name not in result["ratios"]["base"]["systems"]]
    if missing:
        lines += ["", f"Left out, because they did not run: {', '.join(missing)}."]
    lines += [QUOTED, "Raw rounds: training.json. Made by `python benchmarks/training.py`.", ""]
    return "\n".join(lines)
