"""Section [data] of an experiment: which files to read, what to hold out, what to drop."""

import re
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import (
    BaseModel,
    Field,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    field_validator,
    model_validator,
)

from transduce.text.language_names import is_known_language
from transduce.text.tokenizer import TokenizerKind
from transduce.text.trees import TreePart
from transduce.text.vocabulary import is_tag

_ADDED_KEYS = frozenset(
    {
        "corpora",
        "pieces",
        "vocabularies",
        "source_tokenizer",
        "source_end",
        "text",
        "unit",
        "held_out_tail",
        "tree_keeps",
    }
)
TREEBANKS = (".ptb", ".mrg")
_TREEBANK = re.compile(r"(?i)\.(ptb|mrg)(\.(gz|xz|zst|bz2))?$")
_LANGUAGE = re.compile(r"[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*")

Column = PositiveInt | str
"""A column by its name in the header, or by its place counted from 1."""


class CorpusConfig(BaseModel, frozen=True, extra="forbid", use_attribute_docstrings=True):
    """One of several training corpora: `[[data.corpora]]`."""

    files: tuple[str, ...] = Field(min_length=1)
    """The text, in the forms of `data.train`."""

    weight: PositiveFloat | Literal["equal"] = 1.0
    """How often an epoch holds each pair, on average: 1 once, 3 three times, 0.25 a quarter of the pairs, others in
    every epoch. "equal" is as many pairs as `data.train` has, or all if there are fewer."""

    tag: str | None = None
    """A mark such as >>de<< before every source of this corpus. If it names a language and people wrote the sources,
    the model translates into that language, too: `translate --to de` puts the tag before every sentence."""

    synthetic: bool = False
    """A model wrote the sources. The trained model then keeps no hashes of them: no test set is made of them."""

    @field_validator("files", mode="before")
    @classmethod
    def one_file_needs_no_list(cls, value: object) -> object:
        """Read `files = "a.tsv"` as a list of one."""
        return (value,) if isinstance(value, str) else value

    @field_validator("tag")
    @classmethod
    def tag_has_its_form(cls, value: str | None) -> str | None:
        """Refuse a tag that ordinary text could contain, or that no piece of a vocabulary can hold."""
        if value is not None and not is_tag(value):
            raise ValueError(f"{value!r} is no tag. Write up to 12 letters, digits or hyphens as in >>de<<.")
        return value


class DataConfig(BaseModel, frozen=True, extra="forbid", use_attribute_docstrings=True):
    """The corpus. Only `train` is required; the other defaults suit two-column text."""

    train: tuple[str, ...] = ()
    """Training text. Each entry is two aligned files written `a.en,a.de`, or one file of pairs: .tsv, .csv, .jsonl,
    .po, .tmx, .xlf, .xliff, or trees: .ptb, .mrg. Any of them may be compressed (.gz, .xz, .zst, .bz2). (5.1)"""

    corpora: tuple[CorpusConfig, ...] = ()
    """Further training text, each entry with `files`, `weight` (how often an epoch holds each pair: 1 once, 0.25 a
    quarter of the pairs; "equal": as many pairs as `train` has), `tag` (such as >>de<<, put before every source) and
    `synthetic` (true if a model wrote the sources: the trained model then keeps no hashes of them).
    Pairs are held out of `train`, or of all corpora where `train` is empty."""

    text: tuple[str, ...] = ()
    """Text without translations, for a language model: plain files, each perhaps compressed, in place of `train`."""

    unit: Literal["stream", "document", "line"] = "stream"
    """What one text of a language model is: the whole `stream` of lines, a `document` that ends at an empty line, or a
    `line`. Blocks of `max_length` tokens never hold parts of two texts, and generation stops at the end of one."""

    held_out_tail: float = Field(default=0.1, gt=0, lt=1)
    """The share of a language model's text, at its end, that is held out for validation when `valid` is empty."""

    valid: tuple[str, ...] = ()
    """Validation text, in the same forms. Without it, pairs are held out of the training text."""

    test: tuple[str, ...] = ()
    """Test text, in the same forms. It is kept whole: nothing is ever cleaned out of it."""

    expected_pairs: dict[str, PositiveInt] = {}
    """How many pairs a file must hold, by its name without folders (of two aligned files the source's); a file that
    holds more or fewer is refused before training. For recipes: it notices an incomplete or another download."""

    source_language: str | None = None
    """The language to translate from, as a BCP 47 tag such as `en` or `pt-BR`. It also names the column to read."""

    target_language: str | None = None
    """The language to translate to, as a BCP 47 tag such as `de` or `zh-Hant`. It also names the column to read."""

    source_column: Column | None = None
    """The source's column or key in TSV, CSV and JSONL, by name or by place from 1. Unless given: `source`, or the
    language's tag, or else the first column."""

    target_column: Column | None = None
    """The target's column or key in TSV, CSV and JSONL, by name or by place from 1. Unless given: `target`, or the
    language's tag, or else the second column."""

    tree_keeps: tuple[TreePart, ...] = ()
    """What the target keeps of the trees of a treebank: `tags` of words (else XX), `functions` of labels such as
    NP-SBJ, `empty` elements (-NONE-). (6.3)"""

    pieces: Literal["bpe", "characters", "imported", "byte_pieces"] = "bpe"
    """What a text is cut into: `bpe`, frequent parts of words, or `characters`, which make sentences longer than
    `max_length` more often. The pieces of a model that another program trained
    (`imported`; `byte_pieces` for GPT-2) need `tokenizer`. (5.1)"""

    vocabularies: Literal["shared", "separate"] = "shared"
    """Whether source and target share one vocabulary, as in the paper, or each has its own, learned from its side
    alone. (5.1)"""

    tokenizer: Path | None = None
    """A tokenizer to use instead of learning one: a `tokenizer.model`, or a model directory that holds one. It is that
    of the targets if sources have their own."""

    source_tokenizer: Path | None = None
    """The tokenizer of the sources where they have their own, together with `tokenizer`: a file, or a model directory
    with a `source_tokenizer.model`. With a shared vocabulary both must give a piece the same id."""

    source_end: bool = True
    """Whether a source ends in the end token. Some imported models were trained without."""

    max_length: PositiveInt = 256
    """The longest sentence to train on, its end mark included, on either side; the authors' code had the same limit.
    [tokens]"""

    held_out_valid: NonNegativeInt | None = None
    """Pairs held out for validation when `valid` is empty. Unless given: 2 % of the pairs, at most 2,000. [pairs]"""

    held_out_test: NonNegativeInt | None = None
    """Pairs held out for testing when `test` is empty. Unless given: as many as for validation when those are held out
    too, else none. [pairs]"""

    held_out_seed: NonNegativeInt = 1
    """Chooses which pairs are held out."""

    drop_empty: bool = True
    """Drop pairs with nothing on one side."""

    drop_too_long: bool = True
    """Drop pairs longer than `max_length` on either side. Switched off, they are kept and trained on whole."""

    drop_control_characters: bool = True
    """Drop pairs with control characters other than white space: the mark of a file read in the wrong encoding."""

    drop_duplicates: bool = False
    """Drop every pair that occurred before, source and target alike. Off because frequency carries meaning."""

    drop_copies: bool = False
    """Drop pairs whose source equals their target. Off because names and numbers are rightly copied."""

    drop_length_ratio: bool = False
    """Drop pairs with one side more than `max_length_ratio` times as long as the other: often misaligned."""

    max_length_ratio: float = Field(default=4.0, gt=1)
    """How many times as long as the other a side may be, in tokens with the end mark, if `drop_length_ratio` is on."""

    @model_validator(mode="after")
    def tokenizers_go_together(self) -> Self:
        """Refuse to give the tokenizer of one side and learn that of the other."""
        if self.has_source_tokenizer and (self.tokenizer is None) != (self.source_tokenizer is None):
            raise ValueError("Give both tokenizer and source_tokenizer, or neither.")
        if self.pieces in ("imported", "byte_pieces") and self.tokenizer is None:
            raise ValueError(f'pieces = "{self.pieces}" cannot be learned. Give the tokenizer of an imported model.')
        return self

    @model_validator(mode="before")
    @classmethod
    def brackets_have_their_vocabulary(cls, value: Any) -> Any:  # noqa: ANN401 - any value, not validated yet
        """Give words and brackets of trees separate vocabularies unless the user says otherwise."""
        names = value.get("train") if isinstance(value, dict) else None
        first = names if isinstance(names, str) else names[0] if isinstance(names, list | tuple) and names else None
        is_treebank = isinstance(first, str) and _TREEBANK.search(first)
        return {"vocabularies": "separate", **value} if is_treebank else value

    @model_validator(mode="after")
    def trees_are_alone(self) -> Self:
        """Refuse trees beside other text, and one vocabulary for words and brackets."""
        names = [name for split in ("train", "valid", "test") for name in self.names(split)]
        if others := [name for name in names if not _TREEBANK.search(name)]:
            if len(others) < len(names):
                raise ValueError(
                    f"Trees cannot be mixed with other text: {others[0]} is none of {', '.join(TREEBANKS)}."
                )
        elif names and self.vocabularies == "shared":
            raise ValueError("Words and brackets of trees have a vocabulary each. Leave out data.vocabularies.")
        return self

    @property
    def has_trees(self) -> bool:
        """Whether the text is a treebank; its targets are cut into words."""
        return any(_TREEBANK.search(name) for name in self.names("train"))

    def pieces_of(self, key: Literal["tokenizer", "source_tokenizer"]) -> TokenizerKind:
        """Return what the tokenizer of a key cuts text into."""
        return "words" if self.has_trees and key == "tokenizer" else self.pieces

    @model_validator(mode="after")
    def text_is_alone(self) -> Self:
        """Refuse pairs, a second vocabulary and test text beside the text of a language model."""
        others = {"train": self.train, "corpora": self.corpora, "test": self.test}
        given = [f"data.{key}" for key, value in others.items() if value]
        given += ['data.vocabularies = "separate"'] if self.has_source_tokenizer else []
        if self.text and given:
            raise ValueError(
                f"data.text is for a language model, which has no use for {', '.join(given)}. Leave it out."
            )
        return self

    @model_validator(mode="after")
    def equal_weights_have_a_measure(self) -> Self:
        """Refuse a weight relative to `train` where `train` is empty."""
        if not self.train and any(corpus.weight == "equal" for corpus in self.corpora):
            raise ValueError('The weight "equal" of a corpus means as many pairs as data.train has. Give data.train.')
        return self

    @property
    def training_corpora(self) -> tuple[CorpusConfig, ...]:
        """`train`, if given, as the first corpus, and `corpora`."""
        return ((CorpusConfig(files=self.train),) if self.train else ()) + self.corpora

    @property
    def targets(self) -> dict[str, str]:
        """The tag of each language that a tag such as >>de<< names, by corpora that people wrote."""
        tags = [corpus.tag for corpus in self.corpora if corpus.tag is not None and not corpus.synthetic]
        return {tag[2:-2]: tag for tag in tags if is_known_language(tag[2:-2])}

    @property
    def has_training_text(self) -> bool:
        """Whether there is anything to train on."""
        return bool(self.training_corpora or self.text)

    def names(self, split: str) -> tuple[str, ...]:
        """Return the names of all corpora of a split, in the order in which they are read."""
        if split == "train" and self.text:
            return self.text
        if split == "train":
            return tuple(name for corpus in self.training_corpora for name in corpus.files)
        return {"valid": self.valid, "test": self.test}[split]

    @property
    def has_source_tokenizer(self) -> bool:
        """Whether sources have a tokenizer of their own."""
        return self.vocabularies == "separate" or self.source_tokenizer is not None

    @field_validator("train", "text", "valid", "test", mode="before")
    @classmethod
    def one_entry_needs_no_list(cls, value: object) -> object:
        """Read `train = "a.tsv"` as a list of one."""
        return (value,) if isinstance(value, str) else value

    @field_validator("source_language", "target_language")
    @classmethod
    def language_is_a_tag(cls, value: str | None) -> str | None:
        """Refuse a value that is not a BCP 47 tag."""
        if value is not None and not _LANGUAGE.fullmatch(value):
            raise ValueError(
                f"{value!r} is not a language tag. Write a BCP 47 tag: a short code such as en or de, "
                "with further parts after hyphens as in pt-BR."
            )
        return value

    def stated(self) -> dict[str, Any]:
        """Return the settings that affect the prepared corpus, as JSON values.

        It omits keys added by later versions if they have their defaults, so that runs of earlier versions can resume.
        """
        keys, defaults = self.model_dump(mode="json"), DataConfig().model_dump(mode="json")
        return {key: value for key, value in keys.items() if key not in _ADDED_KEYS or value != defaults[key]}
