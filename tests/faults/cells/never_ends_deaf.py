"""Deaf to every signal that a process can refuse.

class: signals
status: timeout
timeout: 2
sees: not done in 2 s(?s:.*)at cell line
"""

import signal


def triton_relu(x):
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    while True:
        pass
