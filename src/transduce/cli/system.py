"""`transduce system`: shows the versions and the hardware that a bug report should include."""

import re
from pathlib import Path
from typing import Annotated, Any

import typer

from transduce.cli.options import Json

LIBRARIES = (
    "markdown-it-py",
    "numpy",
    "polib",
    "py3langid",
    "pydantic",
    "rich",
    "sacrebleu",
    "sacremoses",
    "sentencepiece",
    "sentencex",
    "typer",
)
OPTIONAL = ("torch", "safetensors", "tensorboardX", "zstandard", "ctranslate2")
_NAME = re.compile(r"[A-Za-z0-9][\w.-]*")
# Processor features that decide the speed of training (bf16) and translation (int8), with their names on Linux.
FEATURES = {
    "avx2": ("avx2",),
    "avx512": ("avx512f",),
    "vnni": ("avx512_vnni", "avx_vnni"),
    "bf16": ("avx512_bf16", "bf16"),
    "amx": ("amx_tile",),
}


def system(
    json_output: Json = False,
    bill_of_materials: Annotated[
        bool, typer.Option("--sbom", help="Print the installed packages that transduce uses, as CycloneDX JSON.")
    ] = False,
) -> None:
    """Show versions, processor, precision, threads, memory and disk, for a bug report."""
    import json

    if bill_of_materials:
        typer.echo(json.dumps(software_bill_of_materials(), indent=2, ensure_ascii=False))
        return
    facts = _gather()
    typer.echo(json.dumps(facts, indent=2, ensure_ascii=False) if json_output else as_lines(facts))


def software_bill_of_materials() -> dict[str, Any]:
    """Return transduce and every installed package that it needs, directly or not, as a CycloneDX document."""
    from importlib.metadata import PackageNotFoundError, distribution

    found: dict[str, dict[str, Any]] = {}
    needed: dict[str, list[str]] = {}
    waiting = ["transduce"]
    while waiting:
        name = _comparable(waiting.pop())
        if name in needed:
            continue
        try:
            package = distribution(name)
        except PackageNotFoundError:  # an extra that is not installed
            continue
        reference = f"pkg:pypi/{name}@{package.version}"
        fields = package.metadata
        licence = next((fields[field] for field in ("License-Expression", "License") if field in fields), "unknown")
        found[name] = {
            "type": "library",
            "bom-ref": reference,
            "name": name,
            "version": package.version,
            "purl": reference,
            "licenses": [{"license": {"name": licence.splitlines()[0]}}],
        }
        needed[name] = [_comparable(_NAME.match(entry)[0]) for entry in package.requires or ()]  # type: ignore[index]
        waiting += needed[name]
    references = {name: own["bom-ref"] for name, own in found.items()}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": {**found.pop("transduce"), "type": "application"}},
        "components": [found[name] for name in sorted(found)],
        "dependencies": [
            {"ref": references[name], "dependsOn": sorted({references[own] for own in others if own in references})}
            for name, others in sorted(needed.items())
        ],
    }


def _comparable(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _gather() -> dict[str, Any]:
    import platform
    import shutil

    from transduce.engine import choose_precision
    from transduce.machine import available_cores, memory, processor_flags, processor_name
    from transduce.model.config import ModelConfig
    from transduce.version import __version__

    capability, device, precision = _torch_choices()
    flags = processor_flags()
    features = [name for name, names in FEATURES.items() if flags & set(names)] if flags else None
    total, available = memory()
    return {
        "transduce": __version__,
        "python": f"{platform.python_version()} ({platform.python_implementation()})",
        "libraries": {name: _version_of(name) for name in LIBRARIES + OPTIONAL},
        "platform": platform.platform(),
        "processor": {
            "name": processor_name(),
            "features": features,
            "cores_available": available_cores(),
            "torch_uses": capability,
        },
        "chosen": {
            "device": device,
            "threads": available_cores(),
            "precision": precision,
            "translation": choose_precision("auto", [ModelConfig()]),
        },
        "memory_bytes": {"total": total, "available": available},
        "disk_free_bytes": shutil.disk_usage(Path.cwd()).free,
    }


def _torch_choices() -> tuple[str | None, str | None, str | None]:
    """Return torch's instruction set, and the device and precision of a training; None without torch."""
    from importlib.util import find_spec

    if find_spec("torch") is None:
        return None, None, None
    import torch

    from transduce.compute import configure_compute

    chosen = configure_compute(threads=None, precision="auto")
    return torch.backends.cpu.get_cpu_capability(), chosen.device, chosen.precision


def _version_of(library: str) -> str | None:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(library)
    except PackageNotFoundError:
        return None


def as_lines(facts: dict[str, Any]) -> str:
    """Return one line for each fact, with names and values in two columns."""
    processor, chosen, memory = facts["processor"], facts["chosen"], facts["memory_bytes"]
    features = processor["features"]
    rows = {
        "transduce": facts["transduce"],
        "python": facts["python"],
        **{name: version or "not installed" for name, version in facts["libraries"].items()},
        "platform": facts["platform"],
        "processor": processor["name"],
        "features": "unknown" if features is None else " ".join(features) or "none of those that matter for speed",
        "torch uses": processor["torch_uses"] or "nothing: torch is not installed",
        "cores": f"{processor['cores_available']} available",
        "device": chosen["device"] or "cpu",
        "threads": chosen["threads"],
        "precision": f"{chosen['precision'] or 'nothing'} to train, {chosen['translation']} to translate (auto)",
        "memory": f"{_gigabytes(memory['total'])}, {_gigabytes(memory['available'])} available",
        "disk": f"{_gigabytes(facts['disk_free_bytes'])} free here",
    }
    width = max(len(name) for name in rows)
    return "\n".join(f"{name:<{width}}  {value}" for name, value in rows.items())


def _gigabytes(size: int | None) -> str:
    return "unknown" if size is None else f"{size / 1e9:,.1f} GB"
