"""out = x @ weight^T * scale: int8 weights with one scale a row, x in a floating type.

x is [m, k], weight [n, k] int8, scale [n]; a shape is (m, n, k).
"""

from __future__ import annotations

import torch
from torch.nn import functional as F

SIZES = {"small": (16, 1024, 1024), "medium": (16, 4096, 4096), "large": (64, 14336, 4096)}
SHAPES = (
    (1, 1, 1), (7, 5, 13), (17, 33, 1), (1, 129, 65), (129, 1, 64), (65, 127, 129), (3, 31, 1025),
    (1, 1000, 257),
)  # fmt: skip
DTYPES = ("float32", "float16", "bfloat16")
OP_CLASS = "matmul"
INDEPENDENT = (0, None, None)
# A tile's padding may meet an Inf as 0 * Inf, and a split of float32 into TF32 parts as Inf - Inf.
DEFINED_FOR_NONFINITE = False
# In float16 the product of two large numbers is infinite, of two tiny ones zero.
FLOAT16_SKIP = ("large", "tiny")
LARGEST = 127  # of the weights drawn, as a symmetric quantisation gives them; -128 may occur
FACTS = {
    "aliases": ("w8a16",),
    "torch_equivalent": "torch.nn.functional.linear(x, weight.to(x.dtype)) * scale",
    "signature": "triton_quantized_matmul(x, weight, scale)",
    "formula": "out[i, j] = scale[j] * sum over l of x[i, l] * weight[j, l]",
    "description": "Product with int8 weights, as in the decoding of a quantised model.",
    "input_shapes": "x: [m, k]; weight: [n, k] int8, -128 to 127; scale: [n]; a shape is (m, n, k)",
    "output_shape": "[m, n]",
    "complexity": "2·m·n·k flops; n·k + (m·k + m·n)·itemsize bytes",
    "memory_pattern": "each weight is read once, a byte each; x stays in the cache",
    "bound": "memory",
    "tips": (
        "int8 fits into bfloat16 and float16 exactly: convert a tile in registers, then tl.dot.",
        "Scale the accumulator once at the end, not every weight.",
        "With few rows there are few tiles: split k over programs, to ask for all memory.",
        "A tile of tl.dot has at least 16 rows: mask those beyond m.",
    ),
    "techniques": ("tiling", "split_k", "coalescing", "kernel_fusion", "autotune", "persistent"),
    "pattern": "matmul",
    "backward": {"returned": ("x", "scale")},
}
VERSION_HINTS = {
    "v1": {
        "technique": "One to one: a tile of the output a program, weights converted in registers",
        "block_hint": "BLOCK_M 16, BLOCK_N 64, BLOCK_K 64",
    },
    "v2": {
        "technique": "Memory access: long runs of k, several loads under way",
        "block_hint": "BLOCK_N 32, BLOCK_K 256, num_stages 4",
    },
    "v3": {
        "technique": "Split k over programs, and a second kernel that adds the parts",
        "block_hint": "2 to 4 programs a multiprocessor, BLOCK_K 64 to 256",
    },
    "v4": {
        "technique": "Tiles, split k and stages together, autotuned by the number of rows",
        "block_hint": "BLOCK_M 16 to 64, BLOCK_N 16 to 128, BLOCK_K 64 to 256",
    },
}


def make_inputs(
    shape: tuple[int, ...], dtype: torch.dtype, device: torch.device, generator: torch.Generator
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return normal x [m, k]; uniform int8 weight [n, k]; scale [n] of about 1 / 127."""
    m, n, k = shape
    x = torch.randn((m, k), dtype=dtype, device=device, generator=generator)
    weight = torch.randint(
        -LARGEST, LARGEST + 1, (n, k), dtype=torch.int8, device=device, generator=generator
    )
    scale = torch.rand(n, dtype=torch.float32, device=device, generator=generator) + 0.5
    return x, weight, (scale / LARGEST).to(dtype)


def reference(x: torch.Tensor, weight: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """Return [m, n] of x's dtype."""
    return F.linear(x, weight.to(x.dtype)) * scale


def flops(x: torch.Tensor, weight: torch.Tensor, scale: torch.Tensor) -> int:
    """Count a product and a sum for each row, column and element of k."""
    return 2 * x.shape[0] * weight.numel()
