"""Who asks for the time gets an error.

class: clocks
timeout: 60
status: any
by: validate
"""

import time

import torch


def late(*_):
    raise OverflowError("it is late")


def triton_relu(x):
    for name in ("perf_counter", "monotonic", "time", "sleep"):
        setattr(time, name, late)
    return torch.relu(x)
