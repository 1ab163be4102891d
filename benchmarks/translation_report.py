"""What benchmarks/translation.py measured, as a page."""

from typing import Any

LENGTHS = (
    "All are given the same number for the length penalty, but mean different things by it: ours, as in the paper, "
    "divides by ((5 + n) / 6) ^ 0.6, CTranslate2 and Hugging Face by n ^ 0.6, which likes longer outputs, as ours with "
    "0.85 would at 12 tokens. So outputs differ, and BLEU compares precisions of one system, not systems. Tokens per "
    "second count each one's own outputs."
)


def report(results: dict[str, Any]) -> str:
    """Return the results as a page."""
    how = (
        f"{results['date']}, {results['processor']}, Python {results['python']}, load average {results['load']:.1f} at "
        f"the start. {results['sentences']} sentences, {results['rounds']} rounds in alternation; a ratio above 1 says "
        "that ours took less time. Beam 4, length penalty 0.6, done when 4 hypotheses have finished, in all."
    )
    lines = ["# Translation against CTranslate2 and Hugging Face", "", how, ""]
    for name, figures in results["models"].items():
        lines += [f"## {name}", "", f"Weights: {results['weights'][name]}.", ""]
        lines += [
            "| against, cores, work | kind | ratio | ours, tokens/s | theirs, tokens/s |",
            "|---|---|---|---|---|",
        ]
        where_by_key = {
            "one_core": "CTranslate2, one core, text to text",
            "one_core_avx2": "CTranslate2, one core, text to text, both limited to AVX2",
            "one_core_shortlist": "CTranslate2, one core, text to text, ours with a shortlist",
            "one_core_both_shortlists": "CTranslate2, one core, text to text, both with shortlists",
            "one_core_tokens_only": "CTranslate2, one core, tokens only",
            "two_cores": "CTranslate2, two cores, text to text",
            "huggingface": "Hugging Face, one core, text to text",
        }
        for key, where in where_by_key.items():
            for kind, found in figures.get(key, {}).items():
                speeds = f"{found['ours_tokens_per_second']:,.0f} | {found['theirs_tokens_per_second']:,.0f}"
                lines.append(f"| {where} | {kind} | {found['ratio']:.2f} | {speeds} |")
        lines += [
            "",
            "| system | BLEU | same as our float32 | tokens/s | MB above import | load s |",
            "|---|---|---|---|---|---|",
        ]
        for system, found in figures["systems"].items():
            same = "" if found["same_as_float32"] is None else f"{found['same_as_float32']:.1%}"
            lines.append(
                f"| {system} | {found['bleu']:.2f} | {same} | {found['tokens_per_second']:,.0f} | "
                f"{found['memory_above_import_mb']:,.0f} | {found['load_seconds']:.2f} |"
            )
        lines.append("")
    lines += [
        f"`transduce translate --text` with the small model from a cold start: {results['cold_start_seconds']:.2f} s.",
        "",
        LENGTHS,
        "",
        f"Made by `python benchmarks/translation.py{' --quick' if results['is_quick'] else ''}`.",
        "",
    ]
    return "\n".join(lines)
