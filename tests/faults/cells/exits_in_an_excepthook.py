"""The hooks for exceptions end the process.

class: patches
status: runtime_error
sees: ValueError: mine
"""

import os
import sys

sys.excepthook = lambda *a: os._exit(0)
sys.unraisablehook = lambda *a: os._exit(0)


def triton_relu(x):
    raise ValueError("mine")
