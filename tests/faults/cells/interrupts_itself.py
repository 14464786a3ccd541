"""Ctrl-C is the user's: a worker takes none.

class: signals
status: passed
"""

import os
import signal

import torch


def triton_relu(x):
    os.kill(os.getpid(), signal.SIGINT)
    return torch.relu(x)
