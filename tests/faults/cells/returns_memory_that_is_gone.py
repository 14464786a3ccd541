"""The output's memory is given back before it is read.

class: memory
status: any
"""

import torch


def triton_relu(x):
    out = torch.relu(x)
    out.untyped_storage().resize_(0)
    return out
