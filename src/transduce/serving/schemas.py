"""Schemas of requests and answers: the native API validates with them, and OpenAPI describes all routes by them."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

Text = Annotated[str, Field(description="A sentence or paragraphs, up to the server's limit.")]


class Error(BaseModel):
    """The body of every error."""

    error: str


class TranslateRequest(BaseModel, extra="forbid"):
    """Texts to translate."""

    text: Text | list[Text]
    source: str | None = Field(None, description="Source language; detected if it is auto or missing.")
    target: str | None = Field(None, description="Target language; that of the first model unless given.")
    model: str | None = Field(None, description="The name of a model, in place of languages.")
    alternatives: int = Field(1, ge=1, description="Outputs per text, the best one included.")
    beam: int | None = Field(None, ge=1, description="Beam width of the search; the model's own unless given.")
    length_penalty: float | None = Field(
        None, ge=0.0, le=10.0, description="α of the length penalty; the model's own unless given."
    )
    consensus: bool | None = Field(
        None,
        description="Choose the output that agrees most with the others; the model's own setting unless given.",
    )
    keep_placeholders: Literal["enforce", "report", "off"] | None = Field(
        None,
        description="If an output lacks a placeholder, URL, tag or number of its text: search again for one that has "
        "them, only report it, or do not look; the model's own setting unless given, which is usually enforce.",
    )
    api_key: str | None = Field(None, description="A key, if no header carries it.")


TokenIds = Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=1)]


class SentenceBody(BaseModel):
    """The output for one sentence of a text."""

    start: int = Field(description="Where the sentence begins in the text, in code points.")
    end: int = Field(description="Where it ends.")
    tokens: list[int] = Field(description="The ids of the output's tokens; /v1/attention takes them as target_ids.")
    log_probability: float
    source_tokens: int = Field(description="Number of tokens of the sentence itself.")


class PivotBody(BaseModel):
    """The text between, where two models translate one after the other."""

    language: str
    text: str


class AlternativeBody(BaseModel):
    """One output."""

    text: str
    score: float = Field(
        description="Log-probability divided by the length penalty; ranks the outputs unless consensus does."
    )
    log_probability: float
    tokens: list[str]
    is_finished: bool = Field(description="false if the limit on length cut the output off.")
    sentences: list[SentenceBody] = Field(
        description="The sentences that the text was cut into, in order; with a pivot, those of the text between."
    )


class TranslationBody(BaseModel):
    """The translation of one text; `text` is the best output."""

    text: str
    alternatives: list[AlternativeBody]
    missing: list[str] = Field(
        description="Placeholders and terms of the server's glossary that the best output lacks."
    )
    surplus: list[str] = Field(description="Placeholders that the best output repeats more often than the source.")
    missing_numbers: list[str] = Field(
        description="Numbers of the text, in digits, that the best output lacks; it may have them as words."
    )
    doubts: list[Literal["stutter", "length", "numbers"]] = Field(description="Checks that the best output fails.")
    confidence: float | None = Field(
        description="Estimated probability that the best output's chrF would be at least 60; null if the model is not "
        "calibrated."
    )
    refusal: str = Field(description="Why the text was not translated; empty if it was.")
    pivot: PivotBody | None = Field(description="The text between, if no model serves the pair of languages.")


class TranslateAnswer(BaseModel):
    """Translations in the order of the texts."""

    model: str
    translations: list[TranslationBody]


class GenerateRequest(BaseModel, extra="forbid"):
    """A prompt for a language model."""

    prompt: str = Field("", description="The text to go on from; the beginning of a text unless given.")
    tokens: int = Field(200, ge=1, description="The most tokens to write.")
    temperature: float | None = Field(None, ge=0.0, description="0 takes the most probable token; 0.8 unless given.")
    top_k: int | None = Field(None, ge=1, description="Draw only among this many most probable tokens.")
    top_p: float | None = Field(
        None, gt=0.0, le=1.0, description="Draw only among the tokens with this share of probability."
    )
    beam: int | None = Field(None, ge=1, description="Write the most probable rest of the line instead of drawing.")
    seed: int | None = Field(None, ge=0, lt=2**64, description="The same seed draws the same text; 0 unless given.")
    stop: list[str] = Field([], description="Texts before which to stop.")
    stream: bool = Field(False, description="Answer with server-sent events, while the text is written.")
    model: str | None = Field(None, description="The name of a language model; the first unless given.")
    api_key: str | None = Field(None, description="A key, if no header carries it.")


class GenerateAnswer(BaseModel):
    """What was written after the prompt."""

    model: str
    text: str


class PairBody(BaseModel, extra="forbid"):
    """A sentence and a translation of it."""

    source: str
    target: str


class LikelihoodRequest(BaseModel, extra="forbid"):
    """Pairs to score."""

    pairs: list[PairBody]
    model: str | None = None
    api_key: str | None = None


class LikelihoodBody(BaseModel):
    """log p(target | source), natural logarithm, in total and per token."""

    log_probability: float
    tokens: list[str]
    log_probabilities: list[float]


class LikelihoodAnswer(BaseModel):
    """Likelihoods in the order of the pairs."""

    model: str
    likelihoods: list[LikelihoodBody]


class AttentionRequest(BaseModel, extra="forbid"):
    """A sentence whose attention to return."""

    text: str = Field(description="One sentence; /v1/translate says which sentences a text has.")
    target: str | None = Field(
        None, description="A translation to inspect instead of the model's own; a second text for a text encoder."
    )
    target_ids: TokenIds | None = Field(
        None, description="The same as token ids: `tokens` of a sentence that /v1/translate has translated."
    )
    model: str | None = None
    api_key: str | None = None


class LessonRequest(BaseModel, extra="forbid"):
    """A sentence for the learning page."""

    text: str = Field(description="One sentence.")
    model: str | None = None
    api_key: str | None = None


class NumbersRequest(BaseModel, extra="forbid"):
    """A head, and the tokens of a report from `/v1/attention`."""

    source: list[Annotated[int, Field(ge=0)]] = Field(
        description="The ids of the source's tokens, the end token last; empty for a language model."
    )
    target: list[Annotated[int, Field(ge=0)]] = Field(
        description="The ids of the translation's tokens, with the end token if it has one; empty for a text encoder."
    )
    stack: str = Field(pattern="^[a-z][a-z_]*$", max_length=64, description="The name of one of the report's blocks.")
    layer: int = Field(ge=0, description="Counted from 0.")
    head: int = Field(ge=0, description="Counted from 0.")
    model: str | None = None
    api_key: str | None = None


class ModelBody(BaseModel):
    """A model."""

    name: str
    kind: Literal["translation", "language-model", "text-encoder"]
    source: str | None
    target: str | None
    pivot: str | None = Field(
        description="The language between, if this is two models, one after the other: FIRST+SECOND."
    )
    longest_sentence: int = Field(description="Tokens of the longest sentence that it was trained on.")
    parameters: int
    is_loaded: bool = Field(description="false if a limit of memory keeps it out until a request needs it.")


class DetectionBody(BaseModel):
    """A language, and the confidence from 0 to 100 that a text is in it."""

    confidence: float
    language: str


class LeftBody(BaseModel):
    """A passage of a document that stays untranslated."""

    where: str = Field(description="File and line.")
    reason: str


class LibreTranslateAnswer(BaseModel):
    """LibreTranslate's answer; each field is a list if `q` was one."""

    translatedText: str | list[str]
    detectedLanguage: DetectionBody | list[DetectionBody] | None = None
    alternatives: list[str] | list[list[str]] | None = None
    left: list[LeftBody] | list[list[LeftBody]] | None = Field(
        None,
        description="Only with format html: passages that stay untranslated because their tags would be damaged.",
    )
    missing: list[str] | list[list[str]] | None = Field(
        None, description="Only if a translation lacks placeholders, numbers or terms: those that it lacks."
    )
    pivot: str | list[str | None] | None = Field(
        None, description="Only if no model serves the pair of languages: the language between."
    )


class TranslateFileAnswer(BaseModel):
    """The URL of the translated file, and counts of its texts."""

    translatedFileUrl: str
    filled: int = Field(description="Number of texts translated now.")
    unsure: int = Field(description="Number of those whose confidence is below 0.5; 0 without a calibration.")
    kept: int = Field(description="Number of texts that were translated already.")
    left: list[LeftBody]
    reasons: dict[str, int] = Field(description="Number of texts left for each kind of reason.")
    pivot: str | None = Field(None, description="Only if no model serves the pair of languages: the language between.")


class LanguageBody(BaseModel):
    """A language, and the languages it can be translated to."""

    code: str
    name: str
    targets: list[str]


class HealthBody(BaseModel):
    """The state of the server."""

    status: str


REFUSALS: dict[int | str, dict[str, Any]] = {
    400: {"model": Error, "description": "The request is invalid."},
    401: {"model": Error, "description": "A key is needed."},
    403: {"model": Error, "description": "The key, or the origin of the calling page, is not allowed."},
    404: {"model": Error, "description": "There is no such file."},
    408: {"model": Error, "description": "The body did not arrive in time."},
    413: {"model": Error, "description": "The body is too large, or a document takes too much memory or time to read."},
    429: {"model": Error, "description": "The queue is full; try again after Retry-After seconds."},
    500: {"model": Error, "description": "The server failed."},
    503: {
        "model": Error,
        "description": "No answer in time, or the server is shutting down; try again after Retry-After seconds.",
    },
}


def request_body(
    properties: dict[str, Any],
    *,
    required: list[str],
    media_types: tuple[str, ...] = ("application/json", "application/x-www-form-urlencoded", "multipart/form-data"),
) -> dict[str, Any]:
    """Return the OpenAPI description of a body, by default JSON or a form."""
    schema = {"type": "object", "properties": properties, "required": required}
    return {"requestBody": {"required": True, "content": {kind: {"schema": schema} for kind in media_types}}}
