"""It asks for a petabyte.

op: softmax
status: out_of_memory
"""

import torch


def torch_softmax(x):
    torch.empty(10**15, dtype=torch.uint8, device="cpu")
    return torch.softmax(x, dim=-1)
