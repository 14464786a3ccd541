"""It empties sys.modules under our feet.

class: patches
status: any
"""

import sys


def triton_relu(x):
    sys.modules.clear()
    return x
