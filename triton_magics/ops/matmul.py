"""out = a @ b: out[i, j] = sum over l of a[i, l] * b[l, j]. a is [m, k], b is [k, n].

A shape is (m, n, k).
"""

from __future__ import annotations

import torch

SIZES = {"small": (256, 256, 256), "medium": (1024, 1024, 1024), "large": (4096, 4096, 4096)}
SHAPES = (
    (1, 1, 1), (7, 5, 13), (17, 33, 1), (1, 129, 65), (129, 1, 64), (65, 127, 129), (127, 65, 257),
    (3, 31, 1025), (257, 131, 101),
)  # fmt: skip
DTYPES = ("float32", "float16", "bfloat16")
OP_CLASS = "matmul"
INDEPENDENT = (0, None)
# A tile's padding may meet an Inf as 0 * Inf, and a split of float32 into TF32 parts as Inf - Inf.
DEFINED_FOR_NONFINITE = False
# The product of two large numbers is infinite, of two tiny ones zero: nothing is left to compare.
REGIMES_SKIP = ("large", "tiny")


def make_inputs(
    shape: tuple[int, ...], dtype: torch.dtype, device: torch.device, generator: torch.Generator
) -> tuple[torch.Tensor, torch.Tensor]:
    """Normal a [m, k] and b [k, n], for a shape (m, n, k)."""
    m, n, k = shape
    a = torch.randn((m, k), dtype=dtype, device=device, generator=generator)
    b = torch.randn((k, n), dtype=dtype, device=device, generator=generator)
    return a, b


def reference(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """[m, n], the inputs' dtype."""
    return torch.matmul(a, b)


def flops(a: torch.Tensor, b: torch.Tensor) -> int:
    """One multiplication and one addition for each of m * n * k."""
    return 2 * a.shape[0] * b.shape[1] * a.shape[1]
