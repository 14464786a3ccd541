"""The same, deaf to SIGTERM.

class: processes
status: passed
"""

import os
import signal
import time


def triton_relu(x):
    if os.fork() == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(600)
        os._exit(0)
    return x
