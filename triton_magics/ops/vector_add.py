"""out = x + alpha * y, element by element. Any shape; x and y have the same."""

from __future__ import annotations

import torch

SIZES = {"small": (256, 256), "medium": (1024, 1024), "large": (4096, 4096)}
SHAPES = (
    (1, 1), (7, 13), (1025,), (1, 1000), (2, 3, 129), (3, 4097), (127, 129), (1000, 1), (257, 1023),
)  # fmt: skip
DTYPES = ("float32", "float16", "bfloat16")
OP_CLASS = "elementwise"
INDEPENDENT = (0, 0, None)
DEFINED_FOR_NONFINITE = True
ALPHAS = (1.0, 0.5, -2.0, 0.1)


def make_inputs(
    shape: tuple[int, ...], dtype: torch.dtype, device: torch.device, generator: torch.Generator
) -> tuple[torch.Tensor, torch.Tensor, float]:
    """Normal x and y; alpha, one of a few."""
    x = torch.randn(shape, dtype=dtype, device=device, generator=generator)
    y = torch.randn(shape, dtype=dtype, device=device, generator=generator)
    choice = torch.randint(len(ALPHAS), (), device=device, generator=generator)
    return x, y, ALPHAS[int(choice)]


def reference(x: torch.Tensor, y: torch.Tensor, alpha: float = 1.0) -> torch.Tensor:
    """The same shape and dtype as x."""
    return torch.add(x, y, alpha=alpha)


def flops(x: torch.Tensor, y: torch.Tensor, alpha: float = 1.0) -> int:
    """One multiplication and one addition an element."""
    return 2 * x.numel()
