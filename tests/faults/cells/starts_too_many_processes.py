"""More processes than any kernel needs: the cap ends it.

class: limits
status: crashed
timeout: 30
sees: processes
"""

import os
import signal


def triton_relu(x):
    for _ in range(2000):
        os.posix_spawnp("sleep", ["sleep", "60"], os.environ)
    signal.pause()
