"""It imports a module that is not there.

op: softmax
status: runtime_error
line: 8
"""
import torch
import a_module_that_is_not_there


def torch_softmax(x):
    return torch.softmax(x, dim=-1)
