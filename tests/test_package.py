"""What holds for the package as a whole."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize("code", ["import transduce", "from transduce.cli import app"])
def test_import_does_not_load_torch(code: str) -> None:
    program = f"import sys; {code}; print('torch' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "False"


def test_help_answers_without_torch() -> None:
    program = (
        "import sys; sys.argv = ['transduce', '--help']\n"
        "from transduce.cli import main\n"
        "try:\n    main()\nexcept SystemExit as stop:\n    print('exit', stop.code, 'torch' in sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "Usage" in result.stdout
    assert result.stdout.strip().endswith("exit 0 False")
