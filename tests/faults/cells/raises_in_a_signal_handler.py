"""A timer whose handler raises wherever the process happens to be.

class: signals
status: runtime_error
sees: the timer
"""

import signal


def ring(*_):
    raise RuntimeError("the timer")


def triton_relu(x):
    signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    return x
