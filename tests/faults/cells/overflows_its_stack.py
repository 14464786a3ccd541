"""C code that calls itself too deeply.

class: memory
status: crashed
sees: SIGSEGV
"""

import sys


def triton_relu(x):
    nested = []
    for _ in range(1_000_000):
        nested = [nested]
    sys.setrecursionlimit(10**7)
    return repr(nested)
