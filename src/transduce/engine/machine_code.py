"""The engine's kernels as machine code."""

from pathlib import Path

from transduce.machine_code import MachineCode

CODE = MachineCode(
    Path(__file__).parent / "kernel_sources.py",
    module="transduce.engine.kernel_sources",
    also=("vnni_tile.py", "vnni_products.py", "calls.py", "trampoline.py"),
)
entry = CODE.entry
