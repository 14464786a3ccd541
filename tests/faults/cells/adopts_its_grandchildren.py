"""It is the subreaper of what it leaves.

class: processes
status: passed
sees: RAN
"""

import ctypes
import os
import time


def triton_relu(x):
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
    for _ in range(5):
        if os.fork() == 0:
            if os.fork() == 0:
                time.sleep(600)
            os._exit(0)
    return x
