"""The grammar that wrote the demonstration's corpus: `python -m demo_grammar` writes the file that the package ships.

`composition` draws a tree (`tree`) with words of the `lexicon`; `english` and `german` turn the tree into a sentence
pair; `splits` sorts the pairs into five splits; `labels` finds the words of the tree's parts in both sentences.
Nothing here is part of the installed package.
"""
