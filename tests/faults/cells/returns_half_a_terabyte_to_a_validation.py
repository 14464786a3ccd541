"""An output that is one element, expanded to half a terabyte.

class: memory
status: failed
by: validate
sees: shape
"""

import torch


def triton_relu(x):
    return torch.ones(1).expand(1 << 37)
