"""A process that left its parent, session and group.

class: processes
status: passed
"""

import os
import time


def triton_relu(x):
    if os.fork() == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        time.sleep(600)
        os._exit(0)
    return x
