"""What requests and answers look like: the native API's bodies, and every answer as OpenAPI shows it."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

Text = Annotated[str, Field(description="Text of any length up to the server's limit; may be a paragraph.")]


class Error(BaseModel):
    """What every refusal says."""

    error: str


class TranslateRequest(BaseModel, extra="forbid"):
    """Texts to translate."""

    text: Text | list[Text]
    source: str | None = Field(None, description="Source language; auto, or none, where it is not known.")
    target: str | None = Field(None, description="Target language; the first model's unless given.")
    model: str | None = Field(None, description="A model by name, in place of languages.")
    alternatives: int = Field(1, ge=1, description="Outputs for each text, the best one included.")
    beam: int | None = Field(None, ge=1, description="Hypotheses kept alive; the model's own unless given.")
    length_penalty: float | None = Field(None, ge=0.0, le=10.0, description="α of the length penalty.")
    consensus: bool | None = Field(
        None, description="Take what the hypotheses agree on, not the most probable; the model's own way unless given."
    )
    api_key: str | None = Field(None, description="A key, where no header carries it.")


class AlternativeBody(BaseModel):
    """One output."""

    text: str
    score: float = Field(
        description="log-probability over length penalty: what outputs are ranked by, unless by consensus."
    )
    log_probability: float
    tokens: list[str]
    is_finished: bool = Field(description="false where the limit on length cut the output off.")


class TranslationBody(BaseModel):
    """A text and what became of it, the best output first."""

    text: str
    alternatives: list[AlternativeBody]
    missing: list[str] = Field(
        description="Placeholders, and terms of the server's glossary, that the best output has lost."
    )
    surplus: list[str] = Field(description="Placeholders that the best output repeats more often than the source.")
    refusal: str = Field(description="Why the text was not translated; empty where it was.")


class TranslateAnswer(BaseModel):
    """Translations in the order of the texts."""

    model: str
    translations: list[TranslationBody]


class PairBody(BaseModel, extra="forbid"):
    """A sentence and a translation of it."""

    source: str
    target: str


class LikelihoodRequest(BaseModel, extra="forbid"):
    """Pairs whose probability is asked."""

    pairs: list[PairBody]
    model: str | None = None
    api_key: str | None = None


class LikelihoodBody(BaseModel):
    """log p(target | source), natural logarithm, whole and token by token."""

    log_probability: float
    tokens: list[str]
    log_probabilities: list[float]


class LikelihoodAnswer(BaseModel):
    """Likelihoods in the order of the pairs."""

    model: str
    likelihoods: list[LikelihoodBody]


class AttentionRequest(BaseModel, extra="forbid"):
    """A sentence to look into."""

    text: str
    target: str | None = Field(None, description="Look at this translation instead of the model's own.")
    model: str | None = None
    api_key: str | None = None


TokenIds = Annotated[list[Annotated[int, Field(ge=1)]], Field(min_length=1)]


class NumbersRequest(BaseModel, extra="forbid"):
    """A head whose numbers are asked, for the tokens of a report that `/v1/attention` gave."""

    source: TokenIds = Field(description="The ids of the source's tokens, the end token last.")
    target: TokenIds = Field(description="The ids of the translation's tokens, the end token too.")
    stack: str = Field(pattern="^[a-z][a-z_]*$", max_length=64, description="The name of one of the report's blocks.")
    layer: int = Field(ge=0, description="Counted from 0.")
    head: int = Field(ge=0, description="Counted from 0.")
    model: str | None = None
    api_key: str | None = None


class FloatsBody(BaseModel):
    """A matrix or vector."""

    shape: list[int]
    base64_f32: str = Field(description="Little-endian float32, base64, rows one after the other.")


class NumbersAnswer(BaseModel):
    """One head's queries, keys and values, and how its scores are made of them (section 3.2.1)."""

    stack: str
    layer: int
    head: int
    scores: Literal["scaled", "unscaled", "additive"]
    scale: float
    query: FloatsBody
    key: FloatsBody
    value: FloatsBody
    additive: FloatsBody | None


class ModelBody(BaseModel):
    """A model that is served."""

    name: str
    source: str | None
    target: str | None
    longest_sentence: int = Field(description="Most pieces of a sentence that it has learned from.")
    parameters: int


class DetectionBody(BaseModel):
    """A language that a text may be in, with a confidence from 0 to 100."""

    confidence: float
    language: str


class LeftBody(BaseModel):
    """A stretch of a document that was left as it was."""

    where: str = Field(description="File and line.")
    reason: str


class LibreTranslateAnswer(BaseModel):
    """A translation as LibreTranslate gives it; lists where a list was asked for."""

    translatedText: str | list[str]
    detectedLanguage: DetectionBody | list[DetectionBody] | None = None
    alternatives: list[str] | list[list[str]] | None = None
    left: list[LeftBody] | list[list[LeftBody]] | None = Field(
        None,
        description="Only with format html: stretches whose tags did not come back whole, which stay as they were.",
    )


class TranslateFileAnswer(BaseModel):
    """Where the translated file can be fetched, and what was done with its gaps."""

    translatedFileUrl: str
    filled: int
    kept: int = Field(description="Had a translation already.")
    left: list[LeftBody]


class LanguageBody(BaseModel):
    """A language and what it can be translated to."""

    code: str
    name: str
    targets: list[str]


class HealthBody(BaseModel):
    """Health."""

    status: str


REFUSALS: dict[int | str, dict[str, Any]] = {
    400: {"model": Error, "description": "The request cannot be served as it is."},
    401: {"model": Error, "description": "A key is needed."},
    403: {"model": Error, "description": "The key, or the page that calls, is not allowed."},
    404: {"model": Error, "description": "There is no such thing."},
    408: {"model": Error, "description": "The body did not arrive in time."},
    413: {"model": Error, "description": "The body is too large."},
    429: {"model": Error, "description": "Too much waits already; Retry-After says when to come back."},
    500: {"model": Error, "description": "A fault of the server."},
    503: {"model": Error, "description": "No answer in time, or the server stops; Retry-After says when to come back."},
}


def form_or_json(properties: dict[str, Any], *, required: list[str]) -> dict[str, Any]:
    """Return what OpenAPI says of a body that may be JSON or a form."""
    schema = {"type": "object", "properties": properties, "required": required}
    kinds = ("application/json", "application/x-www-form-urlencoded", "multipart/form-data")
    return {"requestBody": {"required": True, "content": {kind: {"schema": schema} for kind in kinds}}}
