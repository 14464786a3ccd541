"""More processes than any kernel needs: the cap ends it.

status: crashed
timeout: 30
sees: processes
"""

import os
import signal


def triton_relu(x):
    for _ in range(2000):
        if os.fork() == 0:
            signal.pause()
            os._exit(0)
    signal.pause()
