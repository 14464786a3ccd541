"""The same, in a validation.

class: memory
status: out_of_memory
by: validate
sees: Tried to allocate 21.00 GiB
"""

import torch


def triton_relu(x):
    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 21.00 GiB")
