"""Word alignment from the core's attention, against the attention page in float32 and against a lexicon by hand."""

import pytest

from transduce.core import has_core
from transduce.demo.corpus import corpus
from transduce.inspection.alignment import align
from transduce.inspection.pair import TokenizedSentence, found_pair
from transduce.inspection.recording import record
from transduce.model_directory import find_model, load_model
from transduce.translator import Translation, Translator
from transduce.translator.word_alignment import WordAligner, between_spaced_words, pharaoh

needs_core = pytest.mark.skipif(not has_core(), reason="the C++ core was not built, for want of a compiler")
TEXT = "The black dog sees a small house.  Good morning, my friend!"


@pytest.fixture(scope="module")
def translator() -> Translator:
    return Translator.load("en-de", precision="int8", threads=1)


@needs_core
def test_the_core_in_int8_names_the_word_of_the_float32_page(translator: Translator) -> None:
    network = load_model(find_model("en-de")).network()
    texts = [source for source, _ in corpus(pairs=1).test[:60]]
    aligner = WordAligner(translator)
    same = total = 0
    for translation in translator.translate(texts):
        source, target = pair_of(translator, translation)
        cross = record(network, source.ids, target.ids).blocks["cross"].weights_LHQK.numpy()
        words = [[token.word for token in side.tokens] for side in (source, target)]
        page = align(cross, block="cross", source_words=words[0], target_words=words[1]).hard
        pairs = list(zip(aligner.strongest_words(source, target), page, strict=True))
        same, total = same + sum(ours == theirs for ours, theirs in pairs), total + len(pairs)
    assert total > 300
    assert same >= 0.98 * total, f"{same} of {total} words"


def pair_of(translator: Translator, translation: Translation) -> tuple[TokenizedSentence, TokenizedSentence]:
    outputs = translation.alternatives[0].sentences
    ids = [token for output in outputs for token in output.tokens]
    return found_pair(translator.tokenizers, translation.source, translate=lambda _: ids)


@needs_core
def test_words_are_counted_through_all_sentences_of_a_text(translator: Translator) -> None:
    translation = translator.translate(TEXT)
    pairs = {target: source for source, target in WordAligner(translator).pairs(translation)}
    english, german = TEXT.split(), translation.text.split()
    lexicon = {
        "schwarze": "black",
        "Hund": "dog",
        "sieht": "sees",
        "Haus.": "house.",
        "mein": "my",
        "Freund!": "friend!",
    }
    assert sorted(pairs) == list(range(len(german)))
    for word, source in lexicon.items():
        assert english[pairs[german.index(word)]] == source


@needs_core
def test_a_word_leans_where_its_longest_part_leans(translator: Translator) -> None:
    source, target = pair_of(translator, translator.translate("Hello, friend."))
    texts: dict[int, str] = {}
    for token in target.tokens:
        if token.word is not None:
            texts[token.word] = texts.get(token.word, "") + target.text[token.start : token.end]
    hard = [0 if text.strip().isalpha() else 1 for _, text in sorted(texts.items())]
    assert 1 in hard
    pairs = tuple(between_spaced_words(source, target, hard))
    assert pharaoh(pairs) == " ".join(f"0-{place}" for place in range(len(target.text.split())))


def test_what_was_not_translated_has_no_pairs(translator: Translator) -> None:
    assert WordAligner(translator).pairs(Translation.refused("abc", "too long")) == ()
