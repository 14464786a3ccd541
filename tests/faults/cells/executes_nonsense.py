"""What code for another processor does.

class: signals
status: crashed
sees: SIGILL(?s:.*)at cell line
"""

import os
import signal


def triton_relu(x):
    os.kill(os.getpid(), signal.SIGILL)
