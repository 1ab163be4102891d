"""The state that all routes share: options, keys, metrics, models and the dispatcher."""

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

from starlette.requests import Request

from transduce.errors import TransduceError
from transduce.serving.config import ServingConfig
from transduce.serving.dispatcher import Dispatcher
from transduce.serving.document_process import DocumentProcesses
from transduce.serving.finished_files import FinishedFiles
from transduce.serving.job_queue import Job
from transduce.serving.keys import Keys
from transduce.serving.languages import ServedLanguages, with_pivots
from transduce.serving.logs import log
from transduce.serving.metrics import Metrics
from transduce.serving.refusal import Refusal
from transduce.text.language_detection import load_detector

Answer = TypeVar("Answer")
_CLIENT_DISCONNECTED = 499  # nginx's status; it appears only in logs and metrics
_SECONDS_BETWEEN_PROBES = 1.0
_FAULTS = ("missing", "surplus", "missing_numbers", "doubts")


class Service:
    """One running server, apart from its HTTP routes."""

    def __init__(self, config: ServingConfig) -> None:
        self.config = config
        self.keys = Keys(config.api_key_file)
        self.metrics = Metrics()
        self.dispatcher = Dispatcher(config, self.metrics)
        self.documents = DocumentProcesses(megabytes=config.document_memory, seconds=config.document_seconds)
        self.finished_files = FinishedFiles()
        self.is_stopping = False
        self._described: tuple[dict[str, Any], dict[str, Any]] = {}, {}
        self._probe: asyncio.Task[None] | None = None
        self._probed_at = 0.0

    async def start(self) -> None:
        """Load the models and the language detector."""
        await asyncio.gather(self.dispatcher.start(), asyncio.to_thread(load_detector))

    async def stop(self) -> None:
        """Finish requests for up to `stop_seconds`, refuse the rest, end the child."""
        self.is_stopping = True
        await self.dispatcher.stop(seconds=self.config.stop_seconds)
        await self.documents.stop()

    async def reload(self) -> None:
        """Read keys, models and glossary again; on an error, log it and keep using the old version."""
        try:
            self.keys.reload()
            log("keys read again")
            await self.dispatcher.replace_child("reload")
        except (TransduceError, TimeoutError, OSError) as fault:
            log("reload refused", level=logging.ERROR, fault=str(fault) or type(fault).__name__)

    @property
    def models(self) -> dict[str, dict[str, Any]]:
        """The description of each model, and of two in turn where a language is between (`with_pivots`)."""
        own = self.dispatcher.models
        if self._described[0] is not own:
            self._described = own, with_pivots(own)
        return self._described[1]

    @property
    def languages(self) -> ServedLanguages:
        """The languages of the models."""
        return ServedLanguages(self.models)

    def model(self, name: str | None, *, source: str | None = None, target: str | None = None) -> str:
        """Return the name of the model for a request: the model that it names, or the first for its languages."""
        if name is not None:
            if name not in self.models:
                names = ", ".join(self.dispatcher.models)
                raise Refusal(400, f"There is no model of that name. The models are: {names}.")
            return name
        for own, model in self.models.items():
            if source in (None, "auto", model["source"]) and target in (None, model["target"]):
                return own
        raise Refusal(400, "No model serves these languages. GET /v1/models lists the models.")

    def single_model(self, name: str | None) -> str:
        """Return the name of the model that a request names, or of the first; refuse two in turn."""
        model = self.model(name)
        if self.models[model]["through"]:
            raise Refusal(400, f"{model} is two models, one after the other: ask one of them.")
        return model

    def count_tokens(self, model: str, text: str) -> int:
        """Return the number of tokens of a source text, the end token included if the model has one."""
        return len(self.dispatcher.tokenizers[model].encode_source(text))

    def count_target_tokens(self, model: str, text: str) -> int:
        """Return the number of tokens of a target text, the end token included."""
        return len(self.dispatcher.tokenizers[model].encode_targets([text])[0])

    def check_texts(self, texts: Sequence[str]) -> None:
        """Refuse a request with too many texts or characters, with LibreTranslate's message."""
        for size, limit in ((len(texts), self.config.text_limit), (sum(map(len, texts)), self.config.character_limit)):
            if size > limit:
                raise Refusal(400, f"Invalid request: request ({size}) exceeds text limit ({limit})")

    async def translate(self, texts: Sequence[str], *, model: str, options: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the translation of each text: the fields of `Translation` without `source`.

        If the model is two in turn, the translation has `pivot`, the text between.
        """
        through = self.models[model]["through"]
        if not through:
            return await self._translate_directly(texts, model, options)
        began = asyncio.get_running_loop().time()
        first = {"alternatives": 1, "beam": self.models[through[0]]["beam"]}
        first |= {name: value for name, value in options.items() if name == "keep_placeholders"}
        found = await self._translate_directly(texts, through[0], first)
        whole = [number for number, own in enumerate(found) if not own["refusal"]]
        between = [found[number]["alternatives"][0]["text"] for number in whole]
        again = await self._translate_directly(between, through[1], options, since=began)
        for number, text, own in zip(whole, between, again, strict=True):
            lists = {name: list(dict.fromkeys([*found[number][name], *own[name]])) for name in _FAULTS}
            pivot = {"language": self.models[model]["pivot"], "text": text}
            found[number] = {**own, **lists, "confidence": None, "pivot": pivot}
        return found

    async def _translate_directly(
        self, texts: Sequence[str], model: str, options: dict[str, Any], *, since: float | None = None
    ) -> list[dict[str, Any]]:
        jobs = [Job("translate", model, text, self.count_tokens(model, text), options) for text in texts]
        return await self.dispatcher.submit(jobs, since=since)

    async def probe(self) -> None:
        """Translate a letter with each model in memory, ahead of the queue; raise a Refusal if that fails.

        Calls within a second share one translation.
        """
        now = asyncio.get_running_loop().time()
        if self._probe is None or (self._probe.done() and now - self._probed_at > _SECONDS_BETWEEN_PROBES):
            self._probed_at = now
            self._probe = asyncio.create_task(self._translate_probe())
        await asyncio.shield(self._probe)

    async def _translate_probe(self) -> None:
        options = {"beam": 1, "alternatives": 1, "maximum_length": 8}
        names = self.dispatcher.loaded
        jobs = [Job("translate", name, "a", self.count_tokens(name, "a"), options) for name in names]
        await self.dispatcher.submit(jobs, is_probe=True)


async def while_connected(request: Request, work: Coroutine[Any, Any, Answer]) -> Answer:
    """Return the result of `work`; cancel it if the client disconnects first."""
    task = asyncio.create_task(work)
    disconnect = asyncio.create_task(_wait_for_disconnect(request))
    try:
        await asyncio.wait({task, disconnect}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise Refusal(_CLIENT_DISCONNECTED, "The client disconnected.")
    finally:
        task.cancel()
        disconnect.cancel()


async def _wait_for_disconnect(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
