"""A virtual environment for each peer, with pinned versions, made once and kept."""

import subprocess
import sys
from pathlib import Path

# The last of Eole's and of JoeyNMT's is what it imports and does not declare.
PINS = {
    "huggingface": ["torch==2.13.0", "transformers==5.22.2", "numpy<3", "sentencepiece==0.2.2"],
    "marian": ["pymarian==1.12.42"],
    "eole": ["torch==2.13.0", "eole==0.6.4", "aiohttp==3.14.5"],
    "joeynmt": ["torch==2.13.0", "joeynmt==2.3.0", "importlib_metadata==10.2.0"],
}


def python_of(peer: str, folder: Path) -> Path:
    """Return the interpreter of a peer's environment, which is made if it is not there."""
    place = folder / peer
    python = place / "bin" / "python"
    ready = place / "ready"
    if not ready.exists() or ready.read_text(encoding="utf-8") != " ".join(PINS[peer]):
        print(f"installing {' '.join(PINS[peer])} in {place}", flush=True)
        subprocess.run([sys.executable, "-m", "venv", place], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *PINS[peer]], check=True)
        ready.write_text(" ".join(PINS[peer]), encoding="utf-8")
    return python
