"""The signal that asks for its stack is ignored.

class: signals
status: timeout
timeout: 2
sees: not done in 2 s
"""

import signal


def triton_relu(x):
    signal.signal(signal.SIGURG, signal.SIG_IGN)
    while True:
        pass
