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
# In float16 the product of two large numbers is infinite, of two tiny ones zero.
FLOAT16_SKIP = ("large", "tiny")
FACTS = {
    "torch_equivalent": "torch.matmul(a, b)",
    "signature": "triton_matmul(a, b)",
    "formula": "out[i, j] = sum over l of a[i, l] * b[l, j]",
    "description": "Product of two matrices.",
    "input_shapes": "a: [m, k]; b: [k, n]; a shape is (m, n, k)",
    "output_shape": "[m, n]",
    "complexity": "2·m·n·k flops; (m·k + k·n + m·n)·itemsize bytes",
    "memory_pattern": (
        "tiles of a and b are read once per row and column of tiles; the output is written once"
    ),
    "bound": "compute",
    "tips": (
        "Accumulate in float32 over k; convert at the store.",
        "Mask k in both tiles: a masked 0 times garbage from the other tile may be NaN.",
        (
            'float32: tl.dot uses TF32 by default and will not pass; input_precision="tf32x3" or '
            '"ieee".'
        ),
        "Pass all strides: a transposed b is common.",
        "Group the programs so that neighbours share tiles in the L2 cache.",
    ),
    "techniques": (
        "tiling",
        "tf32x3",
        "limbs",
        "swizzle",
        "autotune",
        "tensor_descriptors",
        "persistent",
        "split_k",
        "warp_specialization",
    ),
    "pattern": "matmul",
    "backward": {"returned": ("a", "b")},
}
VERSION_HINTS = {
    "v1": {
        "technique": (
            "One to one: one output tile a program, a loop over k, float32 accumulator, all edges "
            "masked"
        ),
        "block_hint": "BLOCK_M 64, BLOCK_N 64, BLOCK_K 32",
    },
    "v2": {
        "technique": (
            'Tiling: larger tiles with tensor cores, input_precision="tf32x3" for float32, a '
            "pipelined loop"
        ),
        "block_hint": "BLOCK_M and BLOCK_N 64 to 128, BLOCK_K 32 to 64, num_stages 3",
    },
    "v3": {
        "technique": "Program swizzle: groups of tile rows that share tiles in the L2 cache",
        "block_hint": "groups of 8 tile rows; tiles as in v2",
    },
    "v4": {
        "technique": "Tiles, swizzle and autotune together",
        "block_hint": (
            "BLOCK_M and BLOCK_N 64 to 256, BLOCK_K 32 to 128, num_warps 4 or 8, num_stages 2 to 5"
        ),
    },
    "more": {
        "technique": (
            "Tensor descriptors with a persistent kernel; float32 in limbs of float16; split-K "
            "where m and n are small"
        ),
        "block_hint": "128x128x64 or 128x256x64 with num_warps 8",
    },
}


def make_inputs(
    shape: tuple[int, ...], dtype: torch.dtype, device: torch.device, generator: torch.Generator
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return normal a [m, k] and b [k, n], for a shape (m, n, k)."""
    m, n, k = shape
    a = torch.randn((m, k), dtype=dtype, device=device, generator=generator)
    b = torch.randn((k, n), dtype=dtype, device=device, generator=generator)
    return a, b


def reference(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return [m, n], of the inputs' dtype."""
    return torch.matmul(a, b)


def flops(a: torch.Tensor, b: torch.Tensor) -> int:
    """Count one multiplication and one addition for each of m * n * k."""
    return 2 * a.shape[0] * b.shape[1] * a.shape[1]
