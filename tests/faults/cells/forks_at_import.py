"""Two processes import it, and both go on.

class: import
status: any
"""

import os

import torch

os.fork()


def triton_relu(x):
    return torch.relu(x)
