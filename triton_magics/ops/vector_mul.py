"""out = x * y, element by element. Any shape; x and y have the same."""

from __future__ import annotations

import torch

SIZES = {"small": (256, 256), "medium": (1024, 1024), "large": (4096, 4096)}
SHAPES = (
    (1, 1), (7, 13), (1025,), (1, 1000), (2, 3, 129), (3, 4097), (127, 129), (1000, 1), (257, 1023),
)  # fmt: skip
DTYPES = ("float32", "float16", "bfloat16")
OP_CLASS = "elementwise"
INDEPENDENT = (0, 0)
DEFINED_FOR_NONFINITE = True
# The product of two large numbers is infinite, of two tiny ones zero: nothing is left to compare.
REGIMES_SKIP = ("large", "tiny")


def make_inputs(
    shape: tuple[int, ...], dtype: torch.dtype, device: torch.device, generator: torch.Generator
) -> tuple[torch.Tensor, torch.Tensor]:
    """Normal x and y."""
    x = torch.randn(shape, dtype=dtype, device=device, generator=generator)
    y = torch.randn(shape, dtype=dtype, device=device, generator=generator)
    return x, y


def reference(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """The same shape and dtype as x."""
    return torch.mul(x, y)


def flops(x: torch.Tensor, y: torch.Tensor) -> int:
    """One multiplication an element."""
    return x.numel()
