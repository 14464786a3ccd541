"""Run this folder by its path, as a package of its own, without importing what is around it."""

import importlib
import sys
from os.path import abspath, dirname

del sys.path[0]
sys.path.append(dirname(dirname(abspath(__file__))))
importlib.import_module("supervisor.event_loop").main(
    int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
)
