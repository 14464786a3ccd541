"""It empties sys.modules under our feet.

status: any
"""

import sys


def triton_relu(x):
    sys.modules.clear()
    return x
