"""A corpus of our own, generated from a grammar, and the demonstration that uses it.

from transduce import demo
pairs = demo.corpus(pairs=50_000).train
"""

from transduce.demo.corpus import Corpus, corpus, write_corpus

__all__ = ["Corpus", "corpus", "write_corpus"]
