"""Pages in a real Chromium: a fresh context for each page, and a watch on its requests."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Literal

import pytest
import torch
from playwright.sync_api import Browser, Dialog, Page

from transduce.inspection.page import web_files
from transduce.inspection.pair import forced_pair
from transduce.inspection.report import AttentionReport, TranslationSource, inspect
from transduce.model import ModelConfig, Transformer
from transduce.networks.log_probabilities import token_log_probabilities
from transduce.networks.network import Network
from transduce.text.bpe_tokenizer import BpeTokenizer
from transduce.text.tokenizer_pair import TokenizerPair

TOKENIZER = BpeTokenizer.learn(["the dog runs.", "der Hund läuft.", "כלב"] * 3, vocabulary_size=420)
SOURCE = 'the dogs & <img src=x onerror=alert(1)> "runs" <b>'
TARGET = "der Hunde läuft. <b> ובכן כלב"


@dataclass
class Watched:
    """A page, and everything it asked for or complained about."""

    page: Page
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def refuse(self, dialog: Dialog) -> None:
        """Note a dialog, which only foreign code would open, and close it."""
        self.complaints.append(dialog.message)
        dialog.dismiss()

    def text(self, selector: str) -> str:
        """Return what an element shows."""
        return self.page.locator(selector).inner_text()

    def rows(self, table: str) -> list[tuple[str, ...]]:
        """Return the text of the cells of a table's body, without bars."""
        script = "rows => rows.map(row => [...row.cells].filter(c => c.textContent).map(c => c.textContent))"
        found: list[list[str]] = self.page.locator(f"{table} tbody tr").evaluate_all(script)
        return [tuple(row) for row in found]

    def readout(self) -> dict[str, float]:
        """Return the read-out by token; a repeated token has its position in its name."""
        return {row[0]: float(row[1].replace("< 0.0001", "0")) for row in self.rows("#readout")}

    def hash(self) -> dict[str, str]:
        """Return the state in the address."""
        fragment = self.page.url.partition("#")[2]
        return dict(part.split("=") for part in fragment.split("&")) if fragment else {}

    def token(self, side: Literal["queries", "keys"], text: str) -> Any:  # noqa: ANN401
        """Return a token of the head view."""
        return self.page.locator(f".{side} li").get_by_text(text, exact=True).first


Open = Callable[..., Watched]


@pytest.fixture
def open_page(tool: Callable[[str], str], launch: Callable[[str], Browser]) -> Iterator[Open]:
    """Open a page and, when the test is over, make sure that it made no request and logged no error."""
    opened: list[Watched] = []

    def open_at(address: str, *, width: int = 1280, height: int = 900, scheme: str = "light") -> Watched:
        context = launch(tool("chromium")).new_context(
            viewport={"width": width, "height": height}, color_scheme="dark" if scheme == "dark" else "light"
        )
        watched = Watched(context.new_page())
        page = watched.page
        page.set_default_timeout(20_000)
        page.on("request", lambda request: watched.requests.append(request.url))
        page.on("console", lambda message: watched.complaints.append(message.text))
        page.on("pageerror", lambda error: watched.complaints.append(str(error)))
        page.on("dialog", lambda dialog: watched.refuse(dialog))
        page.goto(address)
        opened.append(watched)
        return watched

    yield open_at
    for watched in opened:
        origin = watched.requests[0].partition("#")[0].rpartition("/")[0]
        foreign = [url for url in watched.requests if not url.startswith((origin, "blob:", "data:"))]
        watched.page.context.close()
        assert (foreign, watched.complaints) == ([], [])


def make_network(*, layers: int, heads: int) -> Transformer:
    torch.manual_seed(7)
    config = ModelConfig(
        vocabulary_size=TOKENIZER.vocabulary_size,
        d_model=8 * heads,
        heads=heads,
        d_ff=16,
        encoder_layers=layers,
        decoder_layers=layers + 1,
    )
    network = Transformer(config).eval()
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            if name.endswith(("W_Q.weight", "W_K.weight")):
                parameter.mul_(3.0)  # an untrained head looks at everything alike: make it choose
    return network


def make_report(source: str, target: str, *, network: Network, numbers: bool) -> AttentionReport:
    given, forced = forced_pair(TokenizerPair.shared(TOKENIZER), source, target)
    labels_BT = torch.tensor([forced.ids])
    hidden_BTD = network(torch.tensor([given.ids]), labels_BT).detach()
    asked = tuple(token_log_probabilities(hidden_BTD, network.output, labels_BT)[0].tolist())
    translated = TranslationSource(precision="float32", models=1, is_forced=True, log_probabilities=asked)
    return inspect(network, TOKENIZER, given, forced, translated=translated, with_numbers=numbers)


@pytest.fixture(scope="session")
def network() -> Transformer:
    """Two encoder and three decoder layers of five heads, with random weights."""
    return make_network(layers=2, heads=5)


@pytest.fixture(scope="session")
def report(network: Transformer) -> AttentionReport:
    """A report with markup and right-to-left text."""
    return make_report(SOURCE, TARGET, network=network, numbers=True)


@pytest.fixture(scope="session")
def address(report: AttentionReport, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Where the page lies on the disk."""
    return written(report, tmp_path_factory.mktemp("page") / "attention.html")


@pytest.fixture(scope="session")
def long_address(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A page of 200 x 200 tokens and six layers of eight heads, without numbers."""
    source, target = " ".join(["the dog runs"] * 66 + ["the"]), " ".join(["der Hund läuft"] * 66 + ["der"])
    report = make_report(source, target, network=make_network(layers=5, heads=8), numbers=False)
    assert len(report.source.ids) >= 200
    assert len(report.target.ids) >= 200
    return written(report, tmp_path_factory.mktemp("page") / "long.html")


def written(report: AttentionReport, path: Path) -> str:
    path.write_text(report.to_html(), encoding="utf-8")
    return path.as_uri()


@pytest.fixture
def served(report: AttentionReport, tmp_path: Path) -> Iterator[str]:
    """The files of web/ as they are, only the report put in its place, from a server of this test's own."""
    folder = web_files()
    for file in folder.iterdir():
        (tmp_path / file.name).write_text(file.read_text(encoding="utf-8"), encoding="utf-8")
    empty = '<script type="application/json" id="report"></script>'
    filled = empty.replace("><", ">" + report.to_json().replace("<", "\\u003c") + "<")
    page = (folder / "attention.html").read_text(encoding="utf-8")
    (tmp_path / "attention.html").write_text(page.replace(empty, filled), encoding="utf-8")

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/attention.html"
        server.shutdown()
