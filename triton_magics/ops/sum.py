"""out = sum of x over the last dimension."""

from __future__ import annotations

import torch

SIZES = {"small": (256, 256), "medium": (1024, 1024), "large": (4096, 4096)}
SHAPES = (
    (1, 1), (7, 13), (1, 1000), (3, 4097), (2, 3, 129), (1025,), (127, 129), (257, 1023), (1000, 1),
)  # fmt: skip
DTYPES = ("float32", "float16", "bfloat16")
OP_CLASS = "reduction"
INDEPENDENT = (0,)
DEFINED_FOR_NONFINITE = True
# The sum of a row of large numbers is infinite.
REGIMES_SKIP = ("large",)


def make_inputs(
    shape: tuple[int, ...], dtype: torch.dtype, device: torch.device, generator: torch.Generator
) -> tuple[torch.Tensor]:
    """Normal x [..., m]."""
    return (torch.randn(shape, dtype=dtype, device=device, generator=generator),)


def reference(x: torch.Tensor) -> torch.Tensor:
    """The shape of x without its last dimension, x's dtype."""
    return torch.sum(x, dim=-1)


def flops(x: torch.Tensor) -> int:
    """One addition an element."""
    return x.numel()
