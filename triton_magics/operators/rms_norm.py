"""out = x / sqrt(mean(x * x) + eps) * weight, over the last dimension."""

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
INDEPENDENT = (0, None, None)
# Beside an infinity torch answers NaN on a GPU and 0 on a CPU.
DEFINED_FOR_NONFINITE = False
EPSILONS = (1e-5, 1e-6, 1e-3)
SCALARS = {"eps": EPSILONS}
FACTS = {
    "aliases": ("rmsnorm",),
    "torch_equivalent": "torch.nn.functional.rms_norm(x, x.shape[-1:], weight, eps)",
    "signature": "triton_rms_norm(x, weight, eps=1e-05)",
    "formula": "out = x / sqrt(mean(x * x) + eps) * weight",
    "description": "Each row is scaled to a root mean square of 1, then by element.",
    "input_shapes": "x: [..., n, m]; weight: [m]; eps: a number",
    "output_shape": "the shape of x",
    "complexity": "about 4·n·m flops; 2·n·m·itemsize bytes, and weight once",
    "memory_pattern": (
        "reads each row once if it fits in one block; weight is read by every program and stays "
        "in the cache"
    ),
    "bound": "memory",
    "tips": (
        "One sum, no mean: the squares can be added while the row is loaded.",
        "eps is inside the root, and the mean divides by m, not by the block.",
        "All of it in float32; round at the store.",
    ),
    "techniques": (
        "row_per_program",
        "tiling",
        "kernel_fusion",
        "persistent",
        "coalescing",
        "autotune",
    ),
    "pattern": "fused",
    "backward": {"returned": ("x", "weight")},
}
VERSION_HINTS = {
    "v1": {
        "technique": "Row per program: one sum of squares, in one block",
        "block_hint": "BLOCK_SIZE next_power_of_2(n_cols)",
    },
    "v2": {
        "technique": "Tiling: rows of any length, one pass for the sum and one to write",
        "block_hint": "BLOCK_SIZE 1024 to 4096 along the row",
    },
    "v3": {
        "technique": "Memory coalescing: several short rows a program, few warps",
        "block_hint": "rows x BLOCK_SIZE of about 1024 to 4096 elements",
    },
    "v4": {
        "technique": "Row per program where it fits, tiles where not, autotuned",
        "block_hint": "num_warps 4 to 16, growing with BLOCK_SIZE",
    },
}


def make_inputs(
    shape: tuple[int, ...], dtype: torch.dtype, device: torch.device, generator: torch.Generator
) -> tuple[torch.Tensor, torch.Tensor, float]:
    """Return normal x [..., m] and weight [m]; eps, one of a few."""
    x = torch.randn(shape, dtype=dtype, device=device, generator=generator)
    weight = torch.randn(shape[-1], dtype=dtype, device=device, generator=generator)
    return x, weight, scalars_of(generator).choice(EPSILONS)


def reference(x: torch.Tensor, weight: torch.Tensor, eps: float = 1e-5) -> torch.Tensor:
    """Return a tensor of the same shape and dtype as x."""
    return F.rms_norm(x, x.shape[-1:], weight, eps)


def flops(x: torch.Tensor, weight: torch.Tensor, eps: float = 1e-5) -> int:
    """Count square, its sum, scale and weight: four an element."""
    return 4 * x.numel()
