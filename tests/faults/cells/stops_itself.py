"""A process that is stopped neither works nor ends.

class: signals
status: timeout
timeout: 2
sees: not done in 2 s
"""

import os
import signal


def triton_relu(x):
    os.kill(os.getpid(), signal.SIGSTOP)
