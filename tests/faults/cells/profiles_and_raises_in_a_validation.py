"""A profiler that raises in whatever runs next.

class: patches
timeout: 60
status: runtime_error
by: validate
sees: the profiler
"""

import sys

import torch


def profile(*_):
    raise RuntimeError("the profiler")


def triton_relu(x):
    sys.setprofile(profile)
    return torch.relu(x)
