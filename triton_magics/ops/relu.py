"""out = max(x, 0), element by element; NaN stays NaN. Any shape."""

from __future__ import annotations

import torch

SIZES = {"small": (256, 256), "medium": (1024, 1024), "large": (4096, 4096)}
SHAPES = (
    (1, 1), (7, 13), (1025,), (1, 1000), (2, 3, 129), (3, 4097), (127, 129), (1000, 1), (257, 1023),
)  # fmt: skip
DTYPES = ("float32", "float16", "bfloat16")
OP_CLASS = "elementwise"
INDEPENDENT = (0,)
DEFINED_FOR_NONFINITE = True


def make_inputs(
    shape: tuple[int, ...], dtype: torch.dtype, device: torch.device, generator: torch.Generator
) -> tuple[torch.Tensor]:
    """Normal x."""
    return (torch.randn(shape, dtype=dtype, device=device, generator=generator),)


def reference(x: torch.Tensor) -> torch.Tensor:
    """The same shape and dtype as x."""
    return torch.relu(x)


def flops(x: torch.Tensor) -> int:
    """One comparison an element."""
    return x.numel()
