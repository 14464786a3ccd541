"""It would outlive its parent, which it kills.

class: processes
status: crashed
sees: its process died
"""

import ctypes
import os
import time


def triton_relu(x):
    ctypes.CDLL(None).prctl(1, 0, 0, 0, 0)
    os.kill(os.getppid(), 9)
    time.sleep(600)
