"""An exception that Python can only print.

class: exceptions
status: passed
"""

import torch


class Last:
    def __del__(self):
        raise SystemExit(3)


def triton_relu(x):
    Last()
    return torch.relu(x)
