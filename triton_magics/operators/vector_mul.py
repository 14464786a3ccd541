"""out = x * y, element by element. Any shape; x and y have the same."""

from __future__ import annotations

import torch

SIZES = {"small": (256, 256), "medium": (1024, 1024), "large": (4096, 4096)}
SHAPES = (
    (1, 1), (7, 13), (1025,), (1, 1000), (2, 3, 129), (3, 4097), (127, 129), (1000, 1), (257, 1023),
)  # fmt: skip
DTYPES = ("float32", "float16", "bfloat16")
OP_CLASS = "elementwise"
INDEPENDENT = (0, 0)
DEFINED_FOR_NONFINITE = True
# In float16 the product of two large numbers is infinite, and that of two tiny ones has few bits.
FLOAT16_SKIP = ("large", "tiny")
FACTS = {
    "torch_equivalent": "torch.mul(x, y)",
    "signature": "triton_vector_mul(x, y)",
    "formula": "out = x * y",
    "description": "Elementwise product of two tensors of one shape.",
    "input_shapes": "x, y: any shape, the same",
    "output_shape": "the shape of x",
    "complexity": "n flops; 3·n·itemsize bytes",
    "memory_pattern": "reads x and y once, writes out once; contiguous blocks",
    "bound": "memory",
    "tips": (
        "Mask both loads and the store: the last block is rarely full.",
        "Compute in float32 and let the store round once.",
        (
            "BLOCK_SIZE changes how many programs there are: 256 for small tensors, 1024 for "
            "large ones."
        ),
    ),
    "techniques": ("tiling", "coalescing", "autotune", "persistent"),
    "pattern": "elementwise",
    "backward": {"returned": ("x", "y")},
}
VERSION_HINTS = {
    "v1": {
        "technique": "One to one: x * y, one block a program, masked",
        "block_hint": "BLOCK_SIZE 1024",
    },
    "v2": {
        "technique": (
            "Tiling: BLOCK_SIZE as a parameter, searched with triton.autotune, or several blocks "
            "a program"
        ),
        "block_hint": "BLOCK_SIZE 64 to 1024",
    },
    "v3": {
        "technique": (
            "Memory coalescing: aligned contiguous blocks, wide loads, several elements a thread"
        ),
        "block_hint": "BLOCK_SIZE 1024 with num_warps 4: eight elements a thread",
    },
    "v4": {
        "technique": "Tiling and coalescing, autotuned",
        "block_hint": "configs from BLOCK_SIZE 256 to 4096, num_warps 4 to 8",
    },
}


def make_inputs(
    shape: tuple[int, ...], dtype: torch.dtype, device: torch.device, generator: torch.Generator
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return normal x and y."""
    x = torch.randn(shape, dtype=dtype, device=device, generator=generator)
    y = torch.randn(shape, dtype=dtype, device=device, generator=generator)
    return x, y


def reference(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Return a tensor of the same shape and dtype as x."""
    return torch.mul(x, y)


def flops(x: torch.Tensor, y: torch.Tensor) -> int:
    """Count one multiplication an element."""
    return x.numel()
