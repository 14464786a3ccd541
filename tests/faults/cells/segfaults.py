"""A crash by signal.

class: signals
status: crashed
sees: SIGSEGV(?s:.*)at cell line
"""

import os
import signal


def triton_relu(x):
    os.kill(os.getpid(), signal.SIGSEGV)
