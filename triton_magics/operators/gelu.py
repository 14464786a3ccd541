"""out = x / 2 * (1 + erf(x / sqrt(2))), element by element: the exact form. Any shape."""

from __future__ import annotations

import torch
from torch.nn import functional as F

SIZES = {"small": (256, 256), "medium": (1024, 1024), "large": (4096, 4096)}
SHAPES = (
    (1, 1), (7, 13), (1025,), (1, 1000), (2, 3, 129), (3, 4097), (127, 129), (1000, 1), (257, 1023),
)  # fmt: skip
DTYPES = ("float32", "float16", "bfloat16")
OP_CLASS = "elementwise"
INDEPENDENT = (0,)
DEFINED_FOR_NONFINITE = True
# The formula is -inf * 0 there, NaN, while its limit is 0: either answer is fair.
DEFINED_FOR_MINUS_INF = False
REGIMES_SKIP = ("block of -inf",)
FACTS = {
    "torch_equivalent": "torch.nn.functional.gelu(x)",
    "signature": "triton_gelu(x)",
    "formula": "out = x / 2 * (1 + erf(x / sqrt(2)))",
    "description": "Gaussian error linear unit, exact form (approximate='none').",
    "input_shapes": "x: any shape",
    "output_shape": "the shape of x",
    "complexity": "5·n flops with erf counted as one; 2·n·itemsize bytes",
    "memory_pattern": "reads x once, writes out once; contiguous blocks",
    "bound": "memory",
    "tips": (
        (
            "The exact form is asked for: the tanh formula is an approximation and differs by "
            "more than the tolerance."
        ),
        "tl.erf takes float32 or float64: convert float16 and bfloat16 first.",
        "1 / sqrt(2) is 0.7071067811865476: multiply instead of dividing.",
    ),
    "techniques": ("coalescing", "kernel_fusion", "autotune", "tiling"),
    "pattern": "elementwise",
    "backward": {"returned": ("x",)},
}
VERSION_HINTS = {
    "v1": {
        "technique": "One to one: the erf form in float32, one block a program, masked",
        "block_hint": "BLOCK_SIZE 1024",
    },
    "v2": {
        "technique": (
            "Tiling: several blocks a program, or BLOCK_SIZE searched with triton.autotune"
        ),
        "block_hint": "BLOCK_SIZE 128 to 1024",
    },
    "v3": {
        "technique": (
            "Memory coalescing: aligned contiguous blocks, wide loads, several elements a thread"
        ),
        "block_hint": "BLOCK_SIZE 1024 with num_warps 4: eight elements a thread",
    },
    "v4": {
        "technique": (
            "Tiling and coalescing, autotuned; fuse what comes before or after it in the model"
        ),
        "block_hint": "configs from BLOCK_SIZE 256 to 4096, num_warps 4 to 8",
    },
}


def make_inputs(
    shape: tuple[int, ...], dtype: torch.dtype, device: torch.device, generator: torch.Generator
) -> tuple[torch.Tensor]:
    """Return normal x."""
    return (torch.randn(shape, dtype=dtype, device=device, generator=generator),)


def reference(x: torch.Tensor) -> torch.Tensor:
    """Return a tensor of the same shape and dtype as x."""
    return F.gelu(x)


def flops(x: torch.Tensor) -> int:
    """Count three multiplications, one addition and one erf an element."""
    return 5 * x.numel()
