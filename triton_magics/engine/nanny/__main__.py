"""Runs this folder by its path, as the package `nanny`: none of what is around it is imported."""

import importlib
import sys
from os.path import abspath, dirname

del sys.path[0]
sys.path.append(dirname(dirname(abspath(__file__))))
importlib.import_module("nanny.loop").main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
