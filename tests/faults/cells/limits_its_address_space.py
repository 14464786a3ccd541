"""Nothing can be allocated any more.

class: limits
status: out_of_memory
sees: allocate|MemoryError
"""

import resource

import torch


def triton_relu(x):
    resource.setrlimit(resource.RLIMIT_AS, (1 << 20, 1 << 20))
    return torch.empty(1 << 28)
