"""A tracer that raises in whatever runs next.

class: patches
status: runtime_error
sees: the tracer
"""

import sys

import torch


def trace(*_):
    raise RuntimeError("the tracer")


def triton_relu(x):
    sys.settrace(trace)
    return torch.relu(x)
