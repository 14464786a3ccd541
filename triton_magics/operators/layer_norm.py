"""out = (x - mean(x)) / sqrt(var(x) + eps) * weight + bias, over the last dimension.

The variance is the biased one: the mean of the squared distances to the mean.
"""

from __future__ import annotations

import torch
from torch.nn import functional as F

from triton_magics.operators._draws import scalars_of

SIZES = {"small": (256, 256), "medium": (1024, 1024), "large": (4096, 4096)}
SHAPES = (
    (1, 1), (7, 13), (1, 1000), (3, 4097), (2, 3, 129), (1025,), (127, 129), (257, 1023), (1000, 1),
)  # fmt: skip
DTYPES = ("float32", "float16", "bfloat16")
OP_CLASS = "reduction"
INDEPENDENT = (0, None, None, None)
DEFINED_FOR_NONFINITE = True
EPSILONS = (1e-5, 1e-6, 1e-3)
SCALARS = {"eps": EPSILONS}
FACTS = {
    "aliases": ("layernorm",),
    "torch_equivalent": "torch.nn.functional.layer_norm(x, x.shape[-1:], weight, bias, eps)",
    "signature": "triton_layer_norm(x, weight, bias, eps=1e-05)",
    "formula": "out = (x - mean(x)) / sqrt(var(x) + eps) * weight + bias",
    "description": (
        "Each row is shifted to mean 0 and scaled to variance 1, then scaled and shifted by "
        "element; over the last dimension."
    ),
    "input_shapes": "x: [..., n, m]; weight, bias: [m]; eps: a number",
    "output_shape": "the shape of x",
    "complexity": "about 7·n·m flops; 2·n·m·itemsize bytes, and weight and bias once",
    "memory_pattern": (
        "reads each row once if it fits in one block; weight and bias are read by every program "
        "and stay in the cache"
    ),
    "bound": "memory",
    "tips": (
        "The variance is the biased one: divide by m, not by m - 1.",
        (
            "Take the distances to the mean first, then their squares; masked lanes must count as "
            "0: tl.where(mask, x - mean, 0.0)."
        ),
        "E[x*x] - E[x]*E[x] cancels where the mean is much larger than the spread.",
        "eps is inside the root.",
        "All of it in float32; round at the store.",
    ),
    "techniques": (
        "welford",
        "tiling",
        "row_per_program",
        "kernel_fusion",
        "autotune",
        "coalescing",
        "persistent",
    ),
    "pattern": "fused",
    "backward": {"returned": ("x", "weight", "bias")},
}
VERSION_HINTS = {
    "v1": {
        "technique": "Row per program: mean, distances, variance, scale, in one block",
        "block_hint": "BLOCK_SIZE next_power_of_2(n_cols)",
    },
    "v2": {
        "technique": (
            "Tiling with Welford's variance: one pass over blocks of a row for mean and variance, "
            "one to write"
        ),
        "block_hint": "BLOCK_SIZE 256 to 2048 along the row",
    },
    "v3": {
        "technique": (
            "Memory coalescing: several short rows a program, so that weight and bias are loaded "
            "once for all of them"
        ),
        "block_hint": "rows x BLOCK_SIZE of about 1024 to 4096 elements, num_warps 4 to 8",
    },
    "v4": {
        "technique": "Row per program where it fits, Welford where not, autotuned",
        "block_hint": "num_warps 4 to 16, growing with BLOCK_SIZE",
    },
}


def make_inputs(
    shape: tuple[int, ...], dtype: torch.dtype, device: torch.device, generator: torch.Generator
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, float]:
    """Return normal x [..., m], weight [m] and bias [m]; eps, one of a few."""
    x = torch.randn(shape, dtype=dtype, device=device, generator=generator)
    weight = torch.randn(shape[-1], dtype=dtype, device=device, generator=generator)
    bias = torch.randn(shape[-1], dtype=dtype, device=device, generator=generator)
    return x, weight, bias, scalars_of(generator).choice(EPSILONS)


def reference(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float = 1e-5
) -> torch.Tensor:
    """Return a tensor of the same shape and dtype as x."""
    return F.layer_norm(x, x.shape[-1:], weight, bias, eps)


def flops(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float = 1e-5) -> int:
    """Count mean, distance, square, its sum, scale, weight and bias: seven an element."""
    return 7 * x.numel()
