"""Validation during training: loss over the whole validation text, BLEU and samples over a part of it.

The part is spread evenly over the text and translated greedily in float32, which is quick; `transduce evaluate` gives
the figures to report. Ranks share the batches and exchange their results, so every rank returns the same validation,
which does not depend on the number of ranks.
"""

import json
from collections.abc import Sequence
from dataclasses import replace

import sacrebleu

from transduce.data.padding import batches_by_length
from transduce.data.token_store import TokenStore
from transduce.decoding.config import DecodingConfig
from transduce.networks.network import Network
from transduce.networks.torch_stepper import TorchStepper
from transduce.progress import Progress
from transduce.text.placeholders import restore
from transduce.text.tokenizer_pair import TokenizerPair
from transduce.training.arithmetic import Arithmetic
from transduce.training.distributed import World
from transduce.training.metrics import Sample
from transduce.training.validation import Validation, measure_loss
from transduce.translator.cutting import encode_sentences
from transduce.translator.searching import Searcher, Sentence

SENTENCES_FOR_BLEU = 500
SAMPLES = 5
TOKENS_AT_ONCE = 2048
"""Fewer than `Searcher` takes, so that there are batches for several ranks."""
# A model at the start of training often does not end its outputs; a low limit saves time.
_QUICK = DecodingConfig(beam=1, extra_length=20)


class LossValidator:
    """Measures the loss of a model with its current weights."""

    fewest_tokens_at_once = 1

    def __init__(
        self,
        model: Network,
        store: TokenStore,
        tokenizers: TokenizerPair,
        *,
        tokens_at_once: int,
        arithmetic: Arithmetic,
        world: World,
        progress: Progress,
    ) -> None:
        self.model, self.store, self.tokenizers = model, store, tokenizers
        self.tokens_at_once, self.arithmetic, self.world, self.progress = tokens_at_once, arithmetic, world, progress

    def loss(self) -> Validation:
        """Return the loss alone."""
        return measure_loss(
            self.model,
            self.store,
            tokens_at_once=max(self.tokens_at_once, self.fewest_tokens_at_once),
            arithmetic=self.arithmetic,
            world=self.world,
            progress=self.progress,
        )


class Validator(LossValidator):
    """Validates a model that translates."""

    @property
    def chosen(self) -> list[int]:
        """The sentences that BLEU is measured on."""
        return evenly_spread(len(self.store), SENTENCES_FOR_BLEU)

    def __call__(self) -> Validation:
        """Return loss, BLEU and sample translations."""
        measured = self.loss()
        pairs = [self.store.original(sentence) for sentence in self.chosen]
        translations = self.translate([source for source, _ in pairs])
        bleu = sacrebleu.corpus_bleu(translations, [[reference for _, reference in pairs]]).score
        samples = tuple(
            Sample(*pairs[place], translation=translations[place]) for place in evenly_spread(len(pairs), SAMPLES)
        )
        return replace(measured, bleu=bleu, samples=samples)

    def translate(self, sources: Sequence[str]) -> list[str]:
        """Translate sentences greedily, batched by length; every rank takes its share of the batches."""
        encoded = encode_sentences(sources, self.tokenizers)
        sentences = [Sentence(n, 0, own.protected, own.ids, key=n) for n, own in enumerate(encoded)]
        batches = list(batches_by_length([len(own.ids) for own in encoded], tokens_at_once=TOKENS_AT_ONCE))
        own: dict[int, str] = {}
        was_training = self.model.training
        searcher = Searcher(TorchStepper(self.model.eval()), self.tokenizers.target.decode)
        with self.progress.stage("translating validation sentences", total=len(batches), unit="batches") as stage:
            for places in batches[self.world.rank :: self.world.size]:
                batch = [sentences[place] for place in places]
                for sentence, found in zip(batch, searcher.search(batch, _QUICK), strict=True):
                    own[sentence.text] = restore(searcher.decode(found[0].tokens), sentence.protected.originals)
                stage.advance()
        self.model.train(was_training)
        shares = self.world.gather_texts(json.dumps(list(own.items())))
        translations: dict[int, str] = dict(pair for share in shares for pair in json.loads(share))
        return [translations[place] for place in range(len(sources))]


def evenly_spread(count: int, wanted: int) -> list[int]:
    """Return at most `wanted` of the places 0 to `count` - 1, evenly spread and without randomness."""
    taken = min(count, wanted)
    return [place * count // taken for place in range(taken)]
