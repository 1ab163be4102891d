import pytest
import sentencepiece
from hypothesis import given
from hypothesis import strategies as st

from transduce.text.bpe_tokenizer import LONGEST_WORD, BpeTokenizer
from transduce.text.normalization import normalize
from transduce.text.placeholders import RESERVED
from transduce.text.tokenizer import TextPiece

# Any code point, and often whole words of the corpus, symbols, and what looks like sentencepiece's own pieces.
FAMILIAR = (
    "The",
    " baker",
    "öffnet",
    " die grüne",
    "Tür.",
    "日本語",
    " ",
    "  ",
    "\n",
    "e\u0301",
    "\u2581",
    "\ud800",
    "👩‍🚀",
    "\u1112\u1161\u11ab",
)
META = ("<s>", "</s>", "<unk>", "<pad>", "<0x0A>", "<0x41>", *RESERVED[:3])
CHARACTERS = st.characters(exclude_categories=())
ANY_TEXT = st.lists(st.one_of(st.sampled_from(FAMILIAR + META), st.text(CHARACTERS, max_size=4))).map("".join)
KEYS = st.tuples(st.integers(0, 2**63), st.integers(0, 1000), st.integers(0, 2**40))


@given(text=ANY_TEXT, dropout=st.floats(0, 1), key=KEYS)
def test_decoding_undoes_sampling(
    tokenizer: BpeTokenizer, text: str, dropout: float, key: tuple[int, int, int]
) -> None:
    assert tokenizer.decode(tokenizer.sample(text, dropout=dropout, key=key)) == normalize(text)


@given(text=ANY_TEXT, key=KEYS)
def test_sampling_without_dropout_is_encoding(tokenizer: BpeTokenizer, text: str, key: tuple[int, int, int]) -> None:
    assert tokenizer.sample(text, dropout=0.0, key=key) == tokenizer.encode(text)


@given(text=ANY_TEXT)
def test_sentencepiece_reads_our_file_as_we_mean_it(tokenizer: BpeTokenizer, text: str) -> None:
    theirs = sentencepiece.SentencePieceProcessor(model_proto=tokenizer.to_bytes())
    assert tokenizer.encode(text) == theirs.encode(normalize(text))
    assert theirs.decode(theirs.encode(normalize(text))) == normalize(text)


@given(texts=st.lists(ANY_TEXT, max_size=5), repeats=st.sampled_from([1, 1, 200]))
def test_encoding_together_is_encoding_one_by_one(tokenizer: BpeTokenizer, texts: list[str], repeats: int) -> None:
    texts = [text * repeats for text in texts]
    assert tokenizer.encode_all(texts) == [tokenizer.encode(text) for text in texts]


def test_bytes_that_spell_controls_become_spaces_and_broken_ones_show(tokenizer: BpeTokenizer) -> None:
    def spelled(*values: int) -> list[int]:
        return [20 + value for value in values]

    assert tokenizer.decode(spelled(0x61, 0x0A, 0x00, 0x62)) == "a b"
    assert tokenizer.decode(spelled(0x61, 0xE2, 0x82, 0x62)) == "a\ufffdb"
    assert tokenizer.decode([2, *spelled(0x61), 0, 1, 3]) == "a"


def test_special_symbol_and_byte_ids_are_where_they_were_promised(tokenizer: BpeTokenizer) -> None:
    theirs = sentencepiece.SentencePieceProcessor(model_proto=tokenizer.to_bytes())
    assert (theirs.pad_id(), theirs.unk_id(), theirs.bos_id(), theirs.eos_id()) == tokenizer.special.ids == (0, 1, 2, 3)
    assert [theirs.piece_to_id(symbol) for symbol in RESERVED] == list(range(4, 20))
    assert [token for token in range(tokenizer.vocabulary_size) if theirs.is_byte(token)] == list(range(20, 276))
    assert theirs.get_piece_size() == tokenizer.vocabulary_size == 500
    assert [tokenizer.piece(token) for token in (0, 4, 20)] == ["<pad>", "⟨0⟩", "<0x00>"]
    assert [tokenizer.piece(token) for token in range(276, 500)] == [
        theirs.id_to_piece(token) for token in range(276, 500)
    ]


@given(text=ANY_TEXT)
def test_a_piece_stands_for_its_span(tokenizer: BpeTokenizer, text: str) -> None:
    pieces = tokenizer.pieces(text)
    for piece in pieces:
        if piece.id >= 276 and all(other is piece or not overlap(other, piece) for other in pieces):
            assert normalize(text[piece.start : piece.end]) == piece.text.replace("\u2581", " ").strip()


def overlap(one: TextPiece, other: TextPiece) -> bool:
    return one.start < other.end and other.start < one.end


def test_spans_of_a_worked_example(tokenizer: BpeTokenizer) -> None:
    text = "  Der\u00a0\u00a0 Bäcker o\u0308ffnet ☃"
    spans = [(piece.text, text[piece.start : piece.end]) for piece in tokenizer.pieces(text)]
    assert spans == [
        ("▁Der", "  Der"),
        ("▁Bäcker", "\u00a0\u00a0 Bäcker"),
        ("▁öffnet", " o\u0308ffnet"),
        ("▁", " "),
        *(("<0xE2>", "☃"), ("<0x98>", "☃"), ("<0x83>", "☃")),
    ]


def test_sampling_depends_on_key_and_text_alone(tokenizer: BpeTokenizer, lines: list[str]) -> None:
    fresh = BpeTokenizer.from_bytes(tokenizer.to_bytes())
    numbered = list(enumerate(lines))
    forwards = {n: tokenizer.sample(line, dropout=0.3, key=(1, 2, n)) for n, line in numbered}
    backwards = {n: fresh.sample(line, dropout=0.3, key=(1, 2, n)) for n, line in reversed(numbered)}
    assert forwards == backwards
    other_epoch = {n: tokenizer.sample(line, dropout=0.3, key=(1, 3, n)) for n, line in numbered}
    assert sum(forwards[n] != other_epoch[n] for n in forwards) > len(lines) * 0.9


def test_full_dropout_spells_every_character(tokenizer: BpeTokenizer) -> None:
    ids = tokenizer.sample("The baker", dropout=1.0, key=(0, 0, 0))
    assert [tokenizer.piece(token) for token in ids] == list("▁The▁baker")


def test_a_megabyte_without_spaces_is_worked_on_in_bounded_parts(tokenizer: BpeTokenizer, lines: list[str]) -> None:
    text = "".join(lines).replace(" ", "")
    text *= 1_000_000 // len(text)
    assert tokenizer.decode(tokenizer.encode(text)) == text
    assert max(map(len, tokenizer._words(text))) == LONGEST_WORD
    cut = text[: 10 * LONGEST_WORD]
    assert tokenizer.sample(cut, dropout=0.0, key=(0, 0, 0)) == tokenizer.encode(cut)
    assert [piece.id for piece in tokenizer.pieces(cut)] == tokenizer.encode(cut)


@pytest.mark.parametrize(
    "length", [LONGEST_WORD - 2, LONGEST_WORD - 1, LONGEST_WORD, LONGEST_WORD + 1, 2 * LONGEST_WORD]
)
@pytest.mark.parametrize("frame", ["{}", "The {}", "{} baker", f"{RESERVED[1]}{{}}{RESERVED[0]}", "{}\u2603{}"])
def test_nothing_is_lost_at_the_border_of_a_part(tokenizer: BpeTokenizer, length: int, frame: str) -> None:
    text = frame.replace("{}", ("baker" * length)[:length])
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text
    assert tokenizer.sample(text, dropout=0.0, key=(0, 0, 0)) == ids


def test_spaced_text_is_cut_the_same_however_long_it_is(tokenizer: BpeTokenizer, lines: list[str]) -> None:
    long = " ".join(lines)
    assert tokenizer.encode(long) == [token for line in lines for token in tokenizer.encode(line)]
