"""It is killed by its own alarm, after its answer.

class: signals
status: any
"""

import signal

import torch


def triton_relu(x):
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    return torch.relu(x)
