"""What all routes share: options, keys, figures, the dispatcher, and how a request becomes work for the child."""

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any, TypeVar

from starlette.requests import Request

from transduce.errors import ConfigError, TransduceError
from transduce.serving.child import ChildOrder
from transduce.serving.config import ServingConfig
from transduce.serving.dispatcher import Dispatcher, Work
from transduce.serving.finished_files import FinishedFiles
from transduce.serving.keys import Keys
from transduce.serving.languages import Languages, load_detector
from transduce.serving.logs import log
from transduce.serving.metrics import Metrics
from transduce.serving.refusal import Refusal

Answer = TypeVar("Answer")
_CLIENT_HAS_GONE = 499  # what proxies log for it; nobody is there to read it
_PROBE_LASTS = 1.0


class Service:
    """One running server."""

    def __init__(self, config: ServingConfig) -> None:
        self.config = config
        self.keys = Keys(config.api_key_file)
        self.metrics = Metrics()
        order = ChildOrder(
            named_models(config.models),
            config.threads,
            config.precision,
            config.load_seconds,
            glossary=None if config.glossary is None else str(config.glossary),
            terms=config.terms,
        )
        self.dispatcher = Dispatcher(order, config, self.metrics)
        self.finished_files = FinishedFiles()
        self.is_stopping = False
        self._probe: asyncio.Task[None] | None = None
        self._probed_at = 0.0

    async def start(self) -> None:
        """Load the models; what is wrong with them is raised."""
        await asyncio.gather(self.dispatcher.start(), asyncio.to_thread(load_detector))

    async def stop(self) -> None:
        """Finish what runs, refuse the rest, end the child."""
        self.is_stopping = True
        await self.dispatcher.stop(seconds=self.config.stop_seconds)

    async def reload(self) -> None:
        """Read keys, models and glossary again; what is wrong with them is logged, and the old stay in force."""
        try:
            self.keys.read_again()
            log("keys read again")
            await self.dispatcher.replace_child("reload")
        except (TransduceError, TimeoutError, OSError) as fault:
            log("reload refused", level=logging.ERROR, fault=str(fault) or type(fault).__name__)

    @property
    def languages(self) -> Languages:
        """The pairs served now."""
        return Languages(self.dispatcher.models)

    def model(self, name: str | None, *, source: str | None = None, target: str | None = None) -> str:
        """Return the name of the model that a request means: the one named, that of its languages, or the first."""
        models = self.dispatcher.models
        if name is not None:
            if name not in models:
                raise Refusal(400, f"There is no model of that name. There are: {', '.join(models)}.")
            return name
        fitting = [
            own
            for own, model in models.items()
            if source in (None, "auto", model["source"]) and target in (None, model["target"])
        ]
        if not fitting:
            raise Refusal(400, "No model serves these languages. GET /v1/models lists what there is.")
        return fitting[0]

    def count_tokens(self, model: str, text: str) -> int:
        """Return the length of a source as the model sees it, the end token included."""
        return len(self.dispatcher.tokenizers[model].encode_source(text))

    def count_target_tokens(self, model: str, text: str) -> int:
        """Return the length of a target as the model sees it, the end token included."""
        return len(self.dispatcher.tokenizers[model].encode_targets([text])[0])

    def check_texts(self, texts: Sequence[str]) -> None:
        """Refuse more texts or characters than one request may bring, in LibreTranslate's words."""
        for size, limit in ((len(texts), self.config.text_limit), (sum(map(len, texts)), self.config.character_limit)):
            if size > limit:
                raise Refusal(400, f"Invalid request: request ({size}) exceeds text limit ({limit})")

    async def translate(self, texts: Sequence[str], *, model: str, options: dict[str, Any]) -> list[dict[str, Any]]:
        """Return what became of each text."""
        return await self.dispatcher.submit(
            [Work("translate", model, text, self.count_tokens(model, text), options) for text in texts]
        )

    async def probe(self) -> None:
        """Translate for real, ahead of everybody; raise a Refusal if that fails. Many who ask share one translation."""
        now = asyncio.get_running_loop().time()
        if self._probe is None or (self._probe.done() and now - self._probed_at > _PROBE_LASTS):
            self._probed_at = now
            self._probe = asyncio.create_task(self._translate_probe())
        await asyncio.shield(self._probe)

    async def _translate_probe(self) -> None:
        models = self.dispatcher.models
        options = {"beam": 1, "alternatives": 1, "maximum_length": 8}
        works = [Work("translate", name, "a", self.count_tokens(name, "a"), options) for name in models]
        await self.dispatcher.submit(works, is_probe=True)


async def unless_client_goes(request: Request, work: Coroutine[Any, Any, Answer]) -> Answer:
    """Return what the work returns; if the client goes first, the work is dropped."""
    task = asyncio.create_task(work)
    gone = asyncio.create_task(_wait_until_gone(request))
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise Refusal(_CLIENT_HAS_GONE, "The client has gone.")
    finally:
        task.cancel()
        gone.cancel()


async def _wait_until_gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def named_models(models: Sequence[str]) -> dict[str, str]:
    """Give every model a name that requests can use: its folder's, or its run's where the folder is just "model"."""
    named: dict[str, str] = {}
    for given in models:
        path = Path(given)
        full = path.resolve() if path.exists() else path
        name = full.parent.name if full.name == "model" else full.name
        if name in named:
            raise ConfigError(f"Two models would both be called {name}. Rename one of the folders.")
        named[name] = str(full) if path.exists() else given
    return named
