"""Limit how much of a large result is computed at a time."""

from __future__ import annotations

import torch

ON_CPU = 2**20
ON_GPU = 2**27
SHARE = 2**-7  # of a GPU's free memory, for one float64 tensor


def elements_at_once(device: torch.device) -> int:
    """Return how many elements of a float64 result to compute at a time.

    A GPU needs many: a rounded sum of n terms is n kernel launches for each part, however small the
    part is. Parts of 2**20 elements took 120 s for 16,385 keys on an H100.
    """
    if device.type != "cuda":
        return ON_CPU
    unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    free = torch.cuda.mem_get_info(device)[0] + unused
    return max(ON_CPU, min(ON_GPU, int(free * SHARE) // 8))
