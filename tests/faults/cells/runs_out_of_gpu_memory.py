"""What torch raises where the GPU's memory is full.

class: memory
status: out_of_memory
sees: Tried to allocate 20.00 GiB
"""

import torch


def triton_relu(x):
    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB")
