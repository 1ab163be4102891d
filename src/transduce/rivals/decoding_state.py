"""The decoding state of the rivals: tensors of each sentence, and tensors of each of its beams."""

from dataclasses import dataclass

from torch import Tensor


@dataclass
class BeamState:
    """The tensors that a network keeps between two positions; each network documents their order."""

    sentences: tuple[Tensor, ...]
    """Shapes (B, …): what the beams of a sentence share."""
    beams: list[Tensor]
    """Shapes (B, W, …): what each beam has for itself."""
    length: int = 0
    """How many positions have been decoded."""

    def select(self, sentences_B: Tensor, beams_BW: Tensor) -> "BeamState":
        """Return the state of the named sentences and, for each, the named ones of its beams."""
        return BeamState(
            tuple(each[sentences_B] for each in self.sentences),
            [each[sentences_B[:, None], beams_BW] for each in self.beams],
            self.length,
        )
