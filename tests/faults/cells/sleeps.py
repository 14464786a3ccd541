"""It waits without work.

class: clocks
status: timeout
timeout: 2
sees: not done in 2 s(?s:.*)at cell line
"""

import time


def triton_relu(x):
    time.sleep(600)
