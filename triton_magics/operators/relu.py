"""out = max(x, 0), element by element; NaN stays NaN. Any shape."""

from __future__ import annotations

import torch

SIZES = {"small": (256, 256), "medium": (1024, 1024), "large": (4096, 4096)}
SHAPES = (
    (1, 1), (7, 13), (1025,), (1, 1000), (2, 3, 129), (3, 4097), (127, 129), (1000, 1), (257, 1023),
)  # fmt: skip
DTYPES = ("float32", "float16", "bfloat16")
OP_CLASS = "elementwise"
INDEPENDENT = (0,)
DEFINED_FOR_NONFINITE = True
FACTS = {
    "torch_equivalent": "torch.relu(x)",
    "signature": "triton_relu(x)",
    "formula": "out = max(x, 0)",
    "description": "Elementwise maximum with zero; NaN stays NaN.",
    "input_shapes": "x: any shape",
    "output_shape": "the shape of x",
    "complexity": "n comparisons; 2·n·itemsize bytes",
    "memory_pattern": "reads x once, writes out once; contiguous blocks",
    "bound": "memory",
    "tips": (
        (
            "tl.maximum(x, 0.0) may turn NaN into 0 on a GPU, torch keeps it: tl.where(x < 0, "
            "0.0, x), or propagate_nan=tl.PropagateNan.ALL."
        ),
        "Make a new output: writing into x changes the caller's tensor.",
        "On its own it is bound by memory; fused behind another op it adds no traffic.",
    ),
    "techniques": ("coalescing", "kernel_fusion", "autotune", "tiling"),
    "pattern": "elementwise",
    "backward": {"returned": ("x",)},
}
VERSION_HINTS = {
    "v1": {
        "technique": "One to one: tl.where(x < 0, 0.0, x), one block a program, masked",
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
    return torch.relu(x)


def flops(x: torch.Tensor) -> int:
    """Count one comparison an element."""
    return x.numel()
