"""What an integer division by zero does.

class: signals
status: crashed
sees: SIGFPE(?s:.*)at cell line
"""

import os
import signal


def triton_relu(x):
    os.kill(os.getpid(), signal.SIGFPE)
