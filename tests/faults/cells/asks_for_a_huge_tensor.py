"""A tensor that no machine has room for.

class: memory
status: out_of_memory
sees: allocate
"""

import torch


def triton_relu(x):
    return torch.empty(2**48)
