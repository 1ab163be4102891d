"""Make the README's pictures from a finished demonstration.

    python docs/pictures/make_pictures.py runs/demo terminal.ansi

The terminal's text is what `tmux capture-pane -e -p` gives of `transduce demo` at 80 columns. The pages are
photographed by Chromium through Playwright.

The report and the attention page of 2026-11-18 show the bundled model instead, in training at step 1,800 and finished:
the machine was too busy for a demonstration of the usual length.
"""

import io
import re
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright
from rich.console import Console
from rich.text import Text

FOLDER = Path(__file__).parent


def draw_terminal(captured: Path) -> None:
    """Draw what the terminal showed as an SVG."""
    lines = [line.rstrip() for line in captured.read_text(encoding="utf-8").splitlines()]
    while lines and not lines[-1]:
        lines.pop()
    console = Console(record=True, width=80, file=io.StringIO())
    console.print(Text.from_ansi("\n".join(lines)), soft_wrap=True)
    drawn = console.export_svg(title="transduce demo")
    # rich's picture would fetch a font from elsewhere; ours loads nothing, and keeps indentation.
    drawn = re.sub(r"@font-face \{.*?\}", "", drawn, flags=re.DOTALL).replace("<text ", '<text xml:space="preserve" ')
    (FOLDER / "terminal.svg").write_text(drawn, encoding="utf-8")


def photograph(run: Path, *, browser_path: str) -> None:
    """Photograph the report and the attention page."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path, args=["--no-sandbox", "--disable-gpu"])
        for name, height in (("report", 900), ("attention", 900)):
            page = browser.new_page(viewport={"width": 1200, "height": height})
            page.goto((run / f"{name}.html").absolute().as_uri())
            page.wait_for_timeout(500)
            page.screenshot(path=str(FOLDER / f"{name}.png"))
        page.locator(".queries li").nth(3).click()  # the figure of docs/attention.md shows a pinned token
        page.screenshot(path=str(FOLDER.parent / "figures" / "attention_page.png"))
        browser.close()


if __name__ == "__main__":
    draw_terminal(Path(sys.argv[2]))
    photograph(Path(sys.argv[1]), browser_path="/usr/bin/chromium")
