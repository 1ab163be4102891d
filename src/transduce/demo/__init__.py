"""The bundled English-German corpus, and the demonstration that trains on it.

from transduce import demo
pairs = demo.corpus(pairs=50_000).train
"""

from transduce.demo.corpus import Constituent, CorpusSplits, corpus, labels, write_corpus

__all__ = ["Constituent", "CorpusSplits", "corpus", "labels", "write_corpus"]
