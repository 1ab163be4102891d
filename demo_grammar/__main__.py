"""Write the corpus file that the package ships: `python -m demo_grammar [FILE]`, from the repository's root."""

import bz2
import sys
from pathlib import Path

from demo_grammar.corpus_file import content
from transduce.demo.corpus import FILE

SHIPPED = Path(__file__).parents[1] / "src" / "transduce" / "demo" / FILE

if __name__ == "__main__":
    destination = Path(sys.argv[1]) if len(sys.argv) > 1 else SHIPPED
    destination.write_bytes(bz2.compress(content().encode(), 9))
