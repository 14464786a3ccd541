"""No process can be started any more.

class: limits
status: passed
"""

import resource

import torch


def triton_relu(x):
    resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
    return torch.relu(x)
