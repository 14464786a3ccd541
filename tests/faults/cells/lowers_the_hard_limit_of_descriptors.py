"""No more than a few files can be opened ever again.

class: limits
status: passed
"""

import resource

import torch


def triton_relu(x):
    resource.setrlimit(resource.RLIMIT_NOFILE, (12, 12))
    return torch.relu(x)
