"""out = x + alpha * y, element by element. Any shape; x and y have the same."""

from __future__ import annotations

import torch

from triton_magics.operators._draws import scalars_of

SIZES = {"small": (256, 256), "medium": (1024, 1024), "large": (4096, 4096)}
SHAPES = (
    (1, 1), (7, 13), (1025,), (1, 1000), (2, 3, 129), (3, 4097), (127, 129), (1000, 1), (257, 1023),
)  # fmt: skip
DTYPES = ("float32", "float16", "bfloat16")
OP_CLASS = "elementwise"
INDEPENDENT = (0, 0, None)
DEFINED_FOR_NONFINITE = True
ALPHAS = (1.0, 0.5, -2.0, 0.1)
SCALARS = {"alpha": (1.0, -2.0, 0.1, 0.0)}  # 0 times infinity is NaN
FACTS = {
    "aliases": ("add",),
    "torch_equivalent": "torch.add(x, y, alpha=alpha)",
    "signature": "triton_vector_add(x, y, alpha=1.0)",
    "formula": "out = x + alpha * y",
    "description": "Elementwise sum of two tensors of one shape, the second one scaled.",
    "input_shapes": "x, y: any shape, the same; alpha: a number",
    "output_shape": "the shape of x",
    "complexity": "2·n flops; 3·n·itemsize bytes",
    "memory_pattern": "reads x and y once, writes out once; contiguous blocks",
    "bound": "memory",
    "tips": (
        "alpha is a run-time argument: a kernel that forgets it is right for alpha = 1 only.",
        (
            "Flatten: an elementwise op does not care about the shape. Call .contiguous() first, "
            "or pass strides."
        ),
        "Compute in float32 and let the store round once.",
        (
            "There is no reuse to win: the bytes set the limit, so wide loads and enough programs "
            "are all that counts."
        ),
    ),
    "techniques": ("tiling", "coalescing", "autotune", "persistent"),
    "pattern": "elementwise",
    "backward": {"returned": ("x", "y")},
}
VERSION_HINTS = {
    "v1": {
        "technique": "One to one: x + alpha * y, one block a program, masked",
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
) -> tuple[torch.Tensor, torch.Tensor, float]:
    """Return normal x and y; alpha, one of a few."""
    x = torch.randn(shape, dtype=dtype, device=device, generator=generator)
    y = torch.randn(shape, dtype=dtype, device=device, generator=generator)
    return x, y, scalars_of(generator).choice(ALPHAS)


def reference(x: torch.Tensor, y: torch.Tensor, alpha: float = 1.0) -> torch.Tensor:
    """Return a tensor of the same shape and dtype as x."""
    return torch.add(x, y, alpha=alpha)


def flops(x: torch.Tensor, y: torch.Tensor, alpha: float = 1.0) -> int:
    """Count one multiplication and one addition an element."""
    return 2 * x.numel()
