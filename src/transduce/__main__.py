"""`python -m transduce`, so that `torchrun -m transduce` works too."""

from transduce.cli import main

main()
