"""It is alone, and goes; the process that starts workers does not.

class: processes
status: crashed
sees: SIGKILL
"""

import os
import signal


def triton_relu(x):
    os.kill(os.getppid(), signal.SIGKILL)
    signal.pause()
