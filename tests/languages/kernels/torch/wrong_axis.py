"""It works on the other axis.

op: softmax
status: wrong_values
"""

import torch


def torch_softmax(x):
    return torch.softmax(x, dim=0)
