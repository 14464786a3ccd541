"""An output that is one element, expanded to half a terabyte.

class: memory
status: passed
sees: 137438953472
"""

import torch


def triton_relu(x):
    return torch.ones(1).expand(1 << 37)
