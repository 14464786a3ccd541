"""A thousand times the signal that asks for its stack.

class: signals
status: passed
"""

import os
import signal

import torch


def triton_relu(x):
    for _ in range(1_000):
        os.kill(os.getpid(), signal.SIGURG)
    return torch.relu(x)
