"""It writes to address zero.

op: softmax
status: crashed
"""

import ctypes

import torch


def torch_softmax(x):
    ctypes.memset(0, 1, 8)
    return torch.softmax(x, dim=-1)
