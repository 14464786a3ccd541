"""It multiplies shapes that do not fit.

op: softmax
status: runtime_error
line: 11
"""

import torch

def torch_softmax(x):
    return torch.softmax(x, dim=-1) @ torch.ones(x.shape[-1] + 1, 3)
