"""A child that has ended and that nobody has waited for.

class: processes
status: passed
"""

import os

import torch


def triton_relu(x):
    if os.fork() == 0:
        os._exit(0)
    return torch.relu(x)
