"""out = exp(x - max(x)) / sum(exp(x - max(x))), over the last dimension."""

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
FACTS = {
    "torch_equivalent": "torch.softmax(x, -1)",
    "signature": "triton_softmax(x)",
    "formula": "out = exp(x - max(x)) / sum(exp(x - max(x)))",
    "description": "Every row becomes positive and sums to one; over the last dimension.",
    "input_shapes": "x: [..., n, m]; a row has m elements",
    "output_shape": "the shape of x",
    "complexity": "about 5·n·m flops; 2·n·m·itemsize bytes",
    "memory_pattern": (
        "reads each row once if it fits in one block, else two or three times; writes it once"
    ),
    "bound": "memory",
    "tips": (
        "Subtract the row's maximum before exp, or large inputs overflow.",
        (
            'Load with other=-float("inf"): exp makes it 0. With other=0 the maximum and the sum '
            "are wrong."
        ),
        "Keep maximum and sum in float32.",
        "A row that does not fit in one block: online reduction, two passes instead of three.",
        "Short rows: several rows a program, as a 2-D block.",
    ),
    "techniques": (
        "online_reduction",
        "tiling",
        "row_per_program",
        "kernel_fusion",
        "autotune",
        "coalescing",
        "persistent",
    ),
    "pattern": "fused",
    "backward": {"returned": ("x",)},
}
VERSION_HINTS = {
    "v1": {
        "technique": "Row per program: the whole row in one block, maximum, exp, sum, division",
        "block_hint": "BLOCK_SIZE next_power_of_2(n_cols)",
    },
    "v2": {
        "technique": (
            "Online reduction with tiling: running maximum and sum over blocks of a row, then one "
            "pass to write"
        ),
        "block_hint": "BLOCK_SIZE 256 to 2048 along the row",
    },
    "v3": {
        "technique": (
            "Memory coalescing: several short rows a program as a 2-D block, wide loads for long "
            "ones"
        ),
        "block_hint": "rows x BLOCK_SIZE of about 1024 to 4096 elements, num_warps 4 to 8",
    },
    "v4": {
        "technique": "Row per program where it fits, online reduction where not, autotuned",
        "block_hint": "num_warps 4 to 16, growing with BLOCK_SIZE",
    },
    "more": {
        "technique": (
            "A persistent kernel: as many programs as multiprocessors times a few, each walking "
            "over rows, the next row loaded early"
        ),
        "block_hint": "num_stages 2 to 4 in tl.range",
    },
}


def make_inputs(
    shape: tuple[int, ...], dtype: torch.dtype, device: torch.device, generator: torch.Generator
) -> tuple[torch.Tensor]:
    """Return normal x."""
    return (torch.randn(shape, dtype=dtype, device=device, generator=generator),)


def reference(x: torch.Tensor) -> torch.Tensor:
    """Return a tensor of the same shape and dtype as x; every row sums to one."""
    return torch.softmax(x, dim=-1)


def flops(x: torch.Tensor) -> int:
    """Count max, subtraction, exp, sum and division: five an element."""
    return 5 * x.numel()
