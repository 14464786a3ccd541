"""It leaves three daemons, each in a session of its own.

class: processes
status: passed
sees: RAN
"""

import os


def triton_relu(x):
    for _ in range(3):
        if os.fork() == 0:
            os.setsid()
            if os.fork():
                os._exit(0)
            import time

            time.sleep(600)
            os._exit(0)
    return x
