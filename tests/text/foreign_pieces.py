"""Small sentencepiece models of every kind, trained by sentencepiece, which is also the judge of our cutting."""

import io
from collections.abc import Iterable
from typing import Any

import sentencepiece

from transduce.text.imported_tokenizer import ImportedTokenizer
from transduce.text.imported_vocabulary import ImportedVocabulary

KINDS: dict[str, dict[str, Any]] = {
    "unigram": {},
    "bpe": {"model_type": "bpe"},
    "unigram with bytes": {"byte_fallback": True, "character_coverage": 0.98},
    "bpe with bytes": {"model_type": "bpe", "byte_fallback": True, "character_coverage": 0.98},
    "unigram with symbols": {"user_defined_symbols": [">>deu<<", "%s", "the"]},
    "bpe with symbols": {"model_type": "bpe", "user_defined_symbols": [">>deu<<", "%s", "the"]},
    "spaces kept": {"remove_extra_whitespaces": False, "allow_whitespace_only_pieces": True},
    "no prefix": {"normalization_rule_name": "identity", "add_dummy_prefix": False},
    "unigram of few characters": {"character_coverage": 0.98},
    "folded case": {"normalization_rule_name": "nmt_nfkc_cf"},
}


def trained_pieces(lines: Iterable[str], kind: str = "unigram", *, size: int = 400) -> bytes:
    content = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=content, vocab_size=size, minloglevel=2,
        hard_vocab_limit=False, num_threads=1, **KINDS[kind],
    )  # fmt: skip
    return content.getvalue()


def imported(content: bytes, *, tag: str | None = None, extra: Iterable[str] = ()) -> ImportedTokenizer:
    """Return a tokenizer in the manner of OPUS-MT: </s> 0, <unk> 1, the pieces, and <pad>, the start, as the last."""
    judge = sentencepiece.SentencePieceProcessor(model_proto=content)
    own = [judge.id_to_piece(n) for n in range(judge.get_piece_size())]
    pieces = ["</s>", "<unk>", *(piece for piece in own if piece not in ("</s>", "<unk>", "<s>")), *extra, "<pad>"]
    last = len(pieces) - 1
    return ImportedTokenizer(
        ImportedVocabulary(pieces=tuple(pieces), padding=last, unknown=1, start=last, end=0, tag=tag), content
    )
