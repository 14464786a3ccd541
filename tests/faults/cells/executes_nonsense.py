"""What code for another processor does.

status: crashed
sees: SIGILL
"""

import os
import signal


def triton_relu(x):
    os.kill(os.getpid(), signal.SIGILL)
