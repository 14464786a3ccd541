"""Our own code has thirty frames.

class: limits
by: validate
timeout: 60
status: any
"""

import sys


def triton_relu(x):
    sys.setrecursionlimit(30)
    return x
