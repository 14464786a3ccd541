"""As an administrator ends it.

class: signals
status: crashed
sees: SIGTERM
"""

import os
import signal


def triton_relu(x):
    os.kill(os.getpid(), signal.SIGTERM)
    signal.pause()
