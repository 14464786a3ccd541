"""As the system's out-of-memory killer does it.

class: signals
status: crashed
sees: SIGKILL
"""

import os


def triton_relu(x):
    os.kill(os.getpid(), 9)
