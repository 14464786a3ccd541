"""All that it knows of, and itself.

class: processes
status: crashed
sees: SIGKILL
"""

import os
import signal


def triton_relu(x):
    os.killpg(0, signal.SIGKILL)
