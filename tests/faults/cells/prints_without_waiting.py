"""Its output is lost where nobody reads fast enough.

class: output
status: any
"""

import os

import torch


def triton_relu(x):
    os.set_blocking(1, False)
    for _ in range(1_000):
        print("x" * 10_000)
    return torch.relu(x)
