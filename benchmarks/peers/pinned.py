"""Run a command on one core: python pinned.py COMMAND."""

import os
import sys

from rounds import one_core

one_core()
os.execv(sys.argv[1], sys.argv[1:])
