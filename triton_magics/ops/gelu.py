"""out = x / 2 * (1 + erf(x / sqrt(2))), element by element: the exact form. Any shape."""

from __future__ import annotations

import torch
from torch.nn import functional as F

SIZES = {"small": (256, 256), "medium": (1024, 1024), "large": (4096, 4096)}
SHAPES = (
    (1, 1), (7, 13), (1025,), (1, 1000), (2, 3, 129), (3, 4097), (127, 129), (1000, 1), (257, 1023),
)  # fmt: skip
DTYPES = ("float32", "float16", "bfloat16")
OP_CLASS = "elementwise"
INDEPENDENT = (0,)
# At -inf the formula is -inf * 0, NaN, while its limit is 0: either answer is fair.
DEFINED_FOR_NONFINITE = False


def make_inputs(
    shape: tuple[int, ...], dtype: torch.dtype, device: torch.device, generator: torch.Generator
) -> tuple[torch.Tensor]:
    """Normal x."""
    return (torch.randn(shape, dtype=dtype, device=device, generator=generator),)


def reference(x: torch.Tensor) -> torch.Tensor:
    """The same shape and dtype as x."""
    return F.gelu(x)


def flops(x: torch.Tensor) -> int:
    """Three multiplications, one addition and one erf an element."""
    return 5 * x.numel()
