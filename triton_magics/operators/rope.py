"""Rotary position embedding: each pair (x[i], x[i + half]) is turned by its angle.

out[i] = x[i] * cos[i] - x[i + half] * sin[i]; out[i + half] = x[i + half] * cos[i] + x[i] * sin[i].
x is [batch, heads, seq, 2 * half], cos and sin are [seq, half]; a shape is (batch, heads, seq,
half).
"""

from __future__ import annotations

import torch

SIZES = {"small": (1, 4, 256, 32), "medium": (1, 16, 1024, 64), "large": (2, 32, 4096, 64)}
SHAPES = (
    (1, 1, 1, 1), (1, 1, 7, 13), (1, 2, 127, 32), (2, 3, 65, 16), (1, 1, 129, 64), (1, 2, 33, 40),
    (3, 1, 257, 8), (1, 1, 1023, 5),
)  # fmt: skip
DTYPES = ("float32", "float16", "bfloat16")
OP_CLASS = "elementwise"
INDEPENDENT = (0, None, None)
DEFINED_FOR_NONFINITE = False
# In float16 the product of two large numbers is infinite, of two tiny ones zero.
FLOAT16_SKIP = ("large", "tiny")
BASE = 10_000.0  # of the angles: position * BASE ** (-i / half)
FACTS = {
    "aliases": ("rotary",),
    "torch_equivalent": "cat([a * cos - b * sin, b * cos + a * sin], -1) of x's halves a and b",
    "signature": "triton_rope(x, cos, sin)",
    "formula": "out = (a * cos - b * sin, b * cos + a * sin); x = (a, b)",
    "description": "Rotary position embedding, in the form that turns the halves of a head.",
    "input_shapes": (
        "x: [batch, heads, seq, 2 * half]; cos, sin: [seq, half]; a shape is "
        "(batch, heads, seq, half)"
    ),
    "output_shape": "the shape of x",
    "complexity": "3·n flops for n elements of x; 2·n·itemsize bytes, cos and sin once",
    "memory_pattern": "reads both halves of a row and writes both; cos and sin stay in the cache",
    "bound": "memory",
    "tips": (
        "A program that has both halves reads x once; one for each half reads it twice.",
        "The row of cos is that of the position: row % seq, not of the batch and head.",
        "Compute in float32; torch rounds each product in the half types.",
    ),
    "techniques": ("kernel_fusion", "coalescing", "tiling", "persistent", "autotune"),
    "pattern": "elementwise",
    "backward": {"returned": ("x", "cos", "sin")},
}
VERSION_HINTS = {
    "v1": {
        "technique": "One to one: a row a program, both halves at once",
        "block_hint": "BLOCK_HALF next_power_of_2(half)",
    },
    "v2": {
        "technique": "Tiling: several rows a program, so that a program moves some kilobytes",
        "block_hint": "rows x BLOCK_HALF of about 1024 to 4096",
    },
    "v3": {
        "technique": "Memory access: a program takes all heads of a position; cos and sin once",
        "block_hint": "heads x BLOCK_HALF of about 1024 to 4096",
    },
    "v4": {
        "technique": "All together, autotuned; fuse it with the kernel that writes q and k",
        "block_hint": "configs from 512 to 4096 elements a program, num_warps 2 to 8",
    },
}


def make_inputs(
    shape: tuple[int, ...], dtype: torch.dtype, device: torch.device, generator: torch.Generator
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return normal x [batch, heads, seq, 2 * half]; cos and sin [seq, half] of the angles."""
    *_, seq, half = shape
    full = (*shape[:-1], 2 * half)
    x = torch.randn(full, dtype=dtype, device=device, generator=generator)
    steps = torch.arange(half, dtype=torch.float32, device=device) / max(half, 1)
    positions = torch.arange(seq, dtype=torch.float32, device=device)
    angles = positions[:, None] * BASE**-steps
    return x, angles.cos().to(dtype), angles.sin().to(dtype)


def reference(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Return a tensor of the same shape and dtype as x."""
    a, b = x.chunk(2, dim=-1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1)


def flops(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> int:
    """Count two products and a sum an element."""
    return 3 * x.numel()
