"""out = (x - mean(x)) / sqrt(var(x) + eps) * weight + bias, over the last dimension.

The variance is the biased one: the mean of the squared distances to the mean.
"""

from __future__ import annotations

import torch
from torch.nn import functional as F

SIZES = {"small": (256, 256), "medium": (1024, 1024), "large": (4096, 4096)}
SHAPES = (
    (1, 1), (7, 13), (1, 1000), (3, 4097), (2, 3, 129), (1025,), (127, 129), (257, 1023), (1000, 1),
)  # fmt: skip
DTYPES = ("float32", "float16", "bfloat16")
OP_CLASS = "reduction"
INDEPENDENT = (0, None, None, None)
DEFINED_FOR_NONFINITE = True
# The squares of large numbers overflow float32, in torch's own layer_norm too.
REGIMES_SKIP = ("large",)
EPSILONS = (1e-5, 1e-6, 1e-3)


def make_inputs(
    shape: tuple[int, ...], dtype: torch.dtype, device: torch.device, generator: torch.Generator
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, float]:
    """Normal x [..., m], weight [m] and bias [m]; eps, one of a few."""
    x = torch.randn(shape, dtype=dtype, device=device, generator=generator)
    weight = torch.randn(shape[-1], dtype=dtype, device=device, generator=generator)
    bias = torch.randn(shape[-1], dtype=dtype, device=device, generator=generator)
    choice = torch.randint(len(EPSILONS), (), device=device, generator=generator)
    return x, weight, bias, EPSILONS[int(choice)]


def reference(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float = 1e-5
) -> torch.Tensor:
    """The same shape and dtype as x."""
    return F.layer_norm(x, x.shape[-1:], weight, bias, eps)


def flops(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float = 1e-5) -> int:
    """Mean, distance, square, its sum, scale, weight and bias: seven an element."""
    return 7 * x.numel()
