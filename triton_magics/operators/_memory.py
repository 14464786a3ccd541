"""Limit how much of a large result is computed at a time."""

from __future__ import annotations

from functools import cache

import torch

ON_CPU = 2**20
ON_GPU = 2**26
SHARE_OF_GPU = 2**-7  # of its memory, for one float64 tensor


def elements_at_once(device: torch.device) -> int:
    """Return how many elements of a float64 result to compute at a time.

    A GPU needs many: a rounded sum of n terms is n kernel launches for each part, however small the
    part is. Parts of 2**20 elements took 120 s for 16,385 keys on an H100.
    """
    return ON_CPU if device.type != "cuda" else _on_gpu(device)


@cache
def _on_gpu(device: torch.device) -> int:
    memory = torch.cuda.get_device_properties(device).total_memory
    return max(ON_CPU, min(ON_GPU, int(memory * SHARE_OF_GPU) // 8))
