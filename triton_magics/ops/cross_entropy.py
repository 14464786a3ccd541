"""out = mean over rows of logsumexp(logits[i]) - logits[i, target[i]]; a scalar.

A shape is (rows, classes); the target holds one class a row, int64.
"""

from __future__ import annotations

import torch
from torch.nn import functional as F

SIZES = {"small": (256, 256), "medium": (1024, 1024), "large": (4096, 4096)}
SHAPES = (
    (1, 1), (7, 13), (1, 1000), (3, 4097), (127, 129), (257, 1023), (1000, 1), (1025, 2),
)  # fmt: skip
DTYPES = ("float32", "float16", "bfloat16")
OP_CLASS = "reduction"
# One NaN or Inf makes the only number of the output NaN or Inf, whatever the rest does.
DEFINED_FOR_NONFINITE = False
# A mean over many rows averages the errors of a lower precision away; large logits keep them.
QUICK_REGIMES = ("large",)


def make_inputs(
    shape: tuple[int, ...], dtype: torch.dtype, device: torch.device, generator: torch.Generator
) -> tuple[torch.Tensor, torch.Tensor]:
    """Normal logits [rows, classes]; uniform target [rows]."""
    rows, classes = shape
    logits = torch.randn((rows, classes), dtype=dtype, device=device, generator=generator)
    target = torch.randint(classes, (rows,), device=device, generator=generator)
    return logits, target


def reference(logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """A scalar, shape (), the logits' dtype."""
    return F.cross_entropy(logits, target)


def exact(logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """The reference, some rows at a time: torch would hold the log-softmax of all."""
    rows = max(1, 2**20 // logits.shape[1])
    parts = zip(logits.split(rows), target.split(rows), strict=True)
    total = torch.stack([F.cross_entropy(x, t, reduction="sum") for x, t in parts]).sum()
    return total / len(target)


def flops(logits: torch.Tensor, target: torch.Tensor) -> int:
    """Max, subtraction, exp and sum: four an element."""
    return 4 * logits.numel()
