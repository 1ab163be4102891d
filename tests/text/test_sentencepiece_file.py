import io
import random
import struct

import pytest
import sentencepiece

from transduce.errors import ModelError
from transduce.text.bpe_tokenizer import BpeTokenizer
from transduce.text.sentencepiece_file import LARGEST_FILE, read_model, write_model
from transduce.text.vocabulary import LARGEST_VOCABULARY


def test_reading_undoes_writing() -> None:
    learned = ("▁a", "ab", "▁", "ä", "日本", "b" * 16)
    assert read_model(write_model(learned), name="x") == learned


def test_another_reader_finds_the_same_numbers_in_the_file(tokenizer: BpeTokenizer) -> None:
    protocol = pytest.importorskip("sentencepiece.sentencepiece_model_pb2")
    model = protocol.ModelProto.FromString(tokenizer.to_bytes())
    assert model.trainer_spec.vocab_size == len(model.pieces) == tokenizer.vocabulary_size
    assert model.trainer_spec.byte_fallback
    assert model.trainer_spec.model_type == model.trainer_spec.BPE
    assert (model.normalizer_spec.name, model.normalizer_spec.precompiled_charsmap) == ("identity", b"")
    normalizer = model.normalizer_spec
    assert normalizer.add_dummy_prefix
    assert normalizer.escape_whitespaces
    assert not normalizer.remove_extra_whitespaces
    assert [piece.score for piece in model.pieces[276:]] == [-rank for rank in range(len(model.pieces) - 276)]


@pytest.mark.parametrize(
    ("learned", "flaw"),
    [
        (("▁", "a", "a"), "twice"),
        (("▁", "<unk>"), "a special piece"),
        (("▁", "<0x41>"), "a byte"),
        (("▁", ""), "empty"),
        (("a",), "no mark"),
        (("▁", "a b"), "a space"),
        (("▁", "a\x00"), "a control character"),
        (("▁", "a▁b"), "a mark in the middle"),
        (("▁", "▁▁"), "two marks"),
        (("▁", "\ufdd3"), "a symbol"),
        (("▁", "x\ufdd3"), "a symbol inside"),
        (("▁", "a" * 17), "too long"),
    ],
)
def test_a_file_with_unsound_pieces_is_refused(learned: tuple[str, ...], flaw: str) -> None:
    with pytest.raises(ModelError, match=r"my\.model is damaged or was not written by transduce\. Take"):
        BpeTokenizer.from_bytes(write_model(learned), name="my.model")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n",
        b"\n\xff",
        b"\n\xff\xff\xff\xff\xff\xff",
        b"\n\x02\n",
        b"not a model",
        b"\n\x03\n\x02\xff\xfe",
        b"\x00" * 9,
        b"\n" * 99,
    ],
)
def test_what_is_no_tokenizer_is_refused(content: bytes) -> None:
    with pytest.raises(ModelError, match=r"tokenizer\.model is damaged or"):
        BpeTokenizer.from_bytes(content)


def test_sizes_are_checked_before_work_is_done() -> None:
    with pytest.raises(ModelError, match="at most 20,971,520"):
        BpeTokenizer.from_bytes(bytes(LARGEST_FILE + 1))
    with pytest.raises(ModelError, match="more pieces than the 262,144"):
        BpeTokenizer.from_bytes(b"\n\x02\n\x00" * (LARGEST_VOCABULARY + 1))
    with pytest.raises(ModelError, match="is damaged or"):
        BpeTokenizer.from_bytes(b"\n\xff\xff\xff\xff\x7f\n\x01a")


@pytest.mark.parametrize("change", [b"\x00" * 4, struct.pack("<f", float("nan")), struct.pack("<f", 5.0)])
def test_a_changed_score_is_refused(tokenizer: BpeTokenizer, change: bytes) -> None:
    content, score = tokenizer.to_bytes(), struct.pack("<f", -100.0)
    assert content.count(score) == 1
    with pytest.raises(ModelError):
        BpeTokenizer.from_bytes(content.replace(score, change))


@pytest.mark.parametrize(
    "extra",
    [b"\x00", b"\n\x00", b"\x12\x02\x18\x01", b"\x1a\x05\x12\x03abc", b"\x22\x02\x0a\x00", b"\x2a\x05\x12\x03abc"],
    ids=["rubbish", "piece", "trainer", "charsmap", "self-test", "denormalizer"],
)
def test_nothing_may_be_added(tokenizer: BpeTokenizer, extra: bytes) -> None:
    with pytest.raises(ModelError):
        BpeTokenizer.from_bytes(tokenizer.to_bytes() + extra)


def test_a_sentencepiece_model_of_other_make_is_refused(lines: list[str]) -> None:
    foreign = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=foreign, vocab_size=200, model_type="bpe", minloglevel=2
    )
    with pytest.raises(ModelError, match="was not written by transduce"):
        BpeTokenizer.from_bytes(foreign.getvalue())


def mutate(content: bytes, generator: random.Random) -> bytes:
    """Damage a file as disks, transfers and strangers do."""
    changed = bytearray(content)
    for _ in range(generator.choice([1, 1, 1, 2, 5])):
        at, other = generator.randrange(len(changed) + 1), generator.randrange(len(changed) + 1)
        span = slice(min(at, other), min(min(at, other) + generator.choice([1, 2, 4, 30]), len(changed)))
        match generator.randrange(7):
            case 0:
                changed[span] = bytes(byte ^ 1 << generator.randrange(8) for byte in changed[span])
            case 1:
                changed[span] = generator.randbytes(span.stop - span.start)
            case 2:
                del changed[span]
            case 3:
                changed[at:at] = changed[span]
            case 4:
                changed[at:at] = generator.choice([b"\n", b"\xff\xff\xff\xff\x0f", b"\x12\x00", b"\x1a\x00", b"\x00"])
            case 5:
                del changed[at:]
            case 6:
                changed[span] = b"\xff" * (span.stop - span.start)
    return bytes(changed)


def attack(content: bytes, *, times: int) -> int:
    """Return how many damaged files were taken for tokenizers; each of them must then be one."""
    generator = random.Random(times)
    accepted = 0
    for _ in range(times):
        damaged = mutate(content, generator)
        try:
            tokenizer = BpeTokenizer.from_bytes(damaged)
        except ModelError:
            continue
        accepted += 1
        text = "The old baker öffnet ☃."
        assert tokenizer.to_bytes() == damaged
        assert tokenizer.decode(tokenizer.encode(text)) == text
        assert tokenizer.sample(text, dropout=0.0, key=(0, 0, 0)) == tokenizer.encode(text)
    return accepted


def test_a_damaged_file_is_refused_or_whole(tokenizer: BpeTokenizer) -> None:
    # A changed letter within a piece makes another sound vocabulary; a checksum elsewhere must tell.
    assert attack(tokenizer.to_bytes(), times=1500) < 750


@pytest.mark.slow
@pytest.mark.extended
def test_many_damaged_files_are_refused_or_whole(tokenizer: BpeTokenizer) -> None:
    assert attack(tokenizer.to_bytes(), times=20_000) < 10_000
