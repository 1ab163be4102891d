"""The trained network, frozen for translation on a processor: int8, fused, without padding or copies."""

from transduce.engine.int8_network import Int8Network
from transduce.engine.precision import Precision, choose_precision

__all__ = ["Int8Network", "Precision", "choose_precision"]
