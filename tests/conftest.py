"""What all tests share: above all the tools that some need beyond Python: `@pytest.mark.needs("strace")`.

Where the tool is missing the test skips and says so. Where TRANSDUCE_REQUIRE names the tool (CI does), the test fails
instead, so that a machine that lost its browser cannot pass by skipping. The fixture `tool` gives the path:
`tool("strace")`.
"""

import os
import shutil
import signal
import subprocess
from collections.abc import Callable

import pytest
from hypothesis import settings

# `make test` tries the same examples every time, so that it fails only when the code changes; `make explore` tries new
# ones, more of them. Neither has a deadline: a law does not depend on how long its example took.
settings.register_profile("repeat", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None, max_examples=1_000, print_blob=True)
settings.load_profile(os.environ.get("TRANSDUCE_EXAMPLES", "repeat"))

_TOOLS = {
    "chromium": ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"),
    "strace": ("strace",),
}
# Being installed is not enough: a container may forbid one process to watch another.
_TRIALS = {"strace": ["-o", os.devnull, "true"]}


def pytest_configure(config: pytest.Config) -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # Started in the background, a shell makes us deaf to Ctrl-C, and everything that the tests start with us.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    config.addinivalue_line(
        "markers", "needs(*tools): skips where a tool is missing; fails there if TRANSDUCE_REQUIRE names the tool"
    )
    if unknown := _required() - _TOOLS.keys():
        raise pytest.UsageError(
            f"TRANSDUCE_REQUIRE names {', '.join(sorted(unknown))}; tests know only {', '.join(sorted(_TOOLS))}."
        )


def pytest_runtest_setup(item: pytest.Item) -> None:
    for marker in item.iter_markers("needs"):
        for tool in marker.args:
            fault = _fault_of_tool(tool)
            if fault is None:
                continue
            if tool in _required():
                pytest.fail(f"{fault}, and TRANSDUCE_REQUIRE asks for it.", pytrace=False)
            pytest.skip(f"{fault}. Install it to run this test.")


@pytest.fixture
def tool(request: pytest.FixtureRequest) -> Callable[[str], str]:
    """Return a function from a tool's name to its path, for tests that are marked with what they need."""

    def path_of(name: str) -> str:
        is_declared = any(name in marker.args for marker in request.node.iter_markers("needs"))
        assert is_declared, f"mark the test with needs({name!r})"
        path = _path_of_tool(name)
        assert path is not None
        return path

    return path_of


def _required() -> set[str]:
    return {name.strip() for name in os.environ.get("TRANSDUCE_REQUIRE", "").split(",")} - {""}


def _path_of_tool(tool: str) -> str | None:
    return next((path for name in _TOOLS[tool] if (path := shutil.which(name))), None)


def _fault_of_tool(tool: str) -> str | None:
    path = _path_of_tool(tool)
    if path is None:
        return f"{tool} is not installed"
    if tool in _TRIALS and subprocess.run([path, *_TRIALS[tool]], capture_output=True, check=False).returncode:
        return f"{tool} is installed but does not work here"
    return None
