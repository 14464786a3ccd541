"""Every clock says nan.

class: clocks
by: validate
timeout: 60
status: failed
sees: WRONG
"""

import time

time.monotonic = time.perf_counter = time.time = lambda: float("nan")
time.sleep = lambda s: None


def triton_relu(x):
    return x
