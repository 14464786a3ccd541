"""What an integer division by zero does.

status: crashed
sees: SIGFPE
"""

import os
import signal


def triton_relu(x):
    os.kill(os.getpid(), signal.SIGFPE)
