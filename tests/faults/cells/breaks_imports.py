"""Nothing can be imported any more.

class: patches
timeout: 60
status: any
by: validate
"""

import sys

import torch


def triton_relu(x):
    sys.meta_path.clear()
    sys.path_hooks.clear()
    sys.path.clear()
    return torch.relu(x)
