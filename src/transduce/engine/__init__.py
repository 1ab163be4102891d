"""The trained network, frozen for translation on a processor by the C++ core: int8 or float32, without torch."""

from transduce.engine.frozen_language_model import FrozenLanguageModel, freeze
from transduce.engine.frozen_network import FrozenNetwork
from transduce.engine.precision import Precision, can_be_frozen, choose_precision

__all__ = ["FrozenLanguageModel", "FrozenNetwork", "Precision", "can_be_frozen", "choose_precision", "freeze"]
