"""The same, in a validation.

class: signals
timeout: 60
status: runtime_error
by: validate
sees: the timer
"""

import signal


def ring(*_):
    raise SystemExit("the timer")


def triton_relu(x):
    signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    return x
