"""A file of a terabyte that takes no room.

class: disk
status: passed
"""

import tempfile

import torch


def triton_relu(x):
    with tempfile.NamedTemporaryFile(delete=False) as file:
        file.truncate(1 << 40)
    return torch.relu(x)
