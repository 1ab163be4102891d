"""What all tests share: above all the tools that some need beyond Python: `@pytest.mark.needs("strace")`.

Where the tool is missing the test skips and says so. Where TRANSDUCE_REQUIRE names the tool (CI does), the test fails
instead, so that a machine that lost its browser cannot pass by skipping. The fixture `tool` gives the path:
`tool("strace")`.
"""

import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from playwright.sync_api import Browser

# `make test` tries the same examples every time, so that it fails only when the code changes; `make explore` tries new
# ones, more of them. Neither has a deadline: a law does not depend on how long its example took.
settings.register_profile("repeat", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None, max_examples=1_000, print_blob=True)
settings.load_profile(os.environ.get("TRANSDUCE_EXAMPLES", "repeat"))

# OpenMP's threads spin while they wait. On cores that other processes use too, a test with two threads then took up to
# 20 times as much processor time. torch reads this when it is loaded; the commands that tests start inherit it.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

_TOOLS = {
    "chromium": ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"),
    "strace": ("strace",),
}
# Without these a browser in a container does not start, or looks for its maker's hosts at every start.
_BROWSER_FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
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


@pytest.fixture(autouse=True)
def same_start() -> None:
    """Let each test begin alike, whatever ran before it in this process: one thread, the same random numbers."""
    random.seed(0)
    if (torch := sys.modules.get("torch")) is not None:
        torch.manual_seed(0)
        if torch.get_num_threads() != 1:
            torch.set_num_threads(1)


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


@pytest.fixture(scope="session")
def launch() -> "Iterator[Callable[[str], Browser]]":
    """Return a function that starts the browser at its first call; the session has one browser."""
    from playwright.sync_api import sync_playwright

    running: list[Browser] = []
    with sync_playwright() as playwright:

        def started(path: str) -> "Browser":
            if not running:
                running.append(playwright.chromium.launch(executable_path=path, args=list(_BROWSER_FLAGS)))
            return running[0]

        yield started
        for browser in running:
            browser.close()
