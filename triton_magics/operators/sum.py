"""out = sum of x over the last dimension."""

from __future__ import annotations

import torch

SIZES = {"small": (256, 256), "medium": (1024, 1024), "large": (4096, 4096)}
SHAPES = (
    (1, 1), (7, 13), (1, 1000), (3, 4097), (2, 3, 129), (1025,), (127, 129), (257, 1023), (1000, 1),
)  # fmt: skip
DTYPES = ("float32", "float16", "bfloat16")
OP_CLASS = "reduction"
INDEPENDENT = (0,)
DEFINED_FOR_NONFINITE = True
# In float16 the sum of a row of large numbers is infinite.
FLOAT16_SKIP = ("large",)
FACTS = {
    "torch_equivalent": "torch.sum(x, dim=-1)",
    "signature": "triton_sum(x)",
    "formula": "out = sum of x over the last dimension",
    "description": "Each row becomes one number.",
    "input_shapes": "x: [..., n, m]; a row has m elements",
    "output_shape": "[..., n]",
    "complexity": "n·m flops; n·m·itemsize bytes",
    "memory_pattern": "reads each row once; writes one number a row",
    "bound": "memory",
    "tips": (
        "tl.sum of a float16 block adds in float16: convert to float32 first.",
        "Load with other=0.0.",
        "Keep a block of partial sums in the loop and reduce it once at the end.",
        "Few long rows: split each over several programs; many short rows: several a program.",
    ),
    "techniques": ("tiling", "coalescing", "row_per_program", "split_k", "autotune"),
    "pattern": "reduction",
    "backward": {"returned": ("x",)},
}
VERSION_HINTS = {
    "v1": {
        "technique": "Row per program: the whole row in one block, one number a row",
        "block_hint": "BLOCK_SIZE next_power_of_2(n_cols)",
    },
    "v2": {
        "technique": (
            "Tiling: a loop over blocks with a block of float32 partial sums, reduced once at the "
            "end"
        ),
        "block_hint": "BLOCK_SIZE 256 to 1024 along the row",
    },
    "v3": {
        "technique": (
            "Memory coalescing: several short rows a program as a 2-D block, wide loads for long "
            "ones"
        ),
        "block_hint": "rows x BLOCK_SIZE of about 1024 to 4096 elements, num_warps 4 to 8",
    },
    "v4": {
        "technique": (
            "Tiling and coalescing, autotuned; split rows over several programs where they are few"
        ),
        "block_hint": "configs from BLOCK_SIZE 512 to 4096, num_warps 4 to 16",
    },
    "more": {
        "technique": (
            "Split reduction: parts of a row to several programs, a second kernel adds the "
            "partial sums"
        ),
        "block_hint": "BLOCK_SIZE 1024 to 4096, one part a program",
    },
}


def make_inputs(
    shape: tuple[int, ...], dtype: torch.dtype, device: torch.device, generator: torch.Generator
) -> tuple[torch.Tensor]:
    """Return normal x [..., m]."""
    return (torch.randn(shape, dtype=dtype, device=device, generator=generator),)


def reference(x: torch.Tensor) -> torch.Tensor:
    """Return a tensor of the shape of x without its last dimension, and of its dtype."""
    return torch.sum(x, dim=-1)


def flops(x: torch.Tensor) -> int:
    """Count one addition an element."""
    return x.numel()
