"""out = mean over rows of logsumexp(logits[i]) - logits[i, target[i]]; a scalar.

A shape is (rows, classes); the target holds one class a row, int64.
"""

from __future__ import annotations

import torch
from torch.nn import functional as F

from triton_magics.operators._memory import elements_at_once

SIZES = {"small": (256, 256), "medium": (1024, 1024), "large": (4096, 4096)}
SHAPES = (
    (1, 1), (7, 13), (1, 1000), (3, 4097), (127, 129), (257, 1023), (1000, 1), (1025, 2),
)  # fmt: skip
DTYPES = ("float32", "float16", "bfloat16")
OP_CLASS = "reduction"
DEFINED_FOR_NONFINITE = True  # the mean is NaN where the loss of a row is
# The loss of a class at -inf is infinite, and NaN where a kernel subtracts two of them.
REGIMES_SKIP = ("block of -inf",)
# A mean over many rows averages the errors of a lower precision away; large logits keep them.
QUICK_REGIMES = ("large",)
FACTS = {
    "torch_equivalent": "torch.nn.functional.cross_entropy(logits, target)",
    "signature": "triton_cross_entropy(logits, target)",
    "formula": "out = mean over rows of logsumexp(logits[i]) - logits[i, target[i]]",
    "description": "Negative log-likelihood of the target classes, averaged over the rows.",
    "input_shapes": (
        "logits: [n, classes]; target: [n], int64, 0 to classes - 1; a shape is (n, classes)"
    ),
    "output_shape": "a scalar, shape ()",
    "complexity": "about 4·n·classes flops; n·classes·itemsize bytes",
    "memory_pattern": (
        "reads each row once, one target and one extra logit a row; writes one number"
    ),
    "bound": "memory",
    "tips": (
        "log-sum-exp is max + log(sum(exp(x - max))): subtract the maximum.",
        "Read the target's logit with its own load; there is no need for the softmax itself.",
        (
            "The mean over rows goes across programs: write a loss per row to a float32 buffer "
            "and reduce it in a second kernel, or tl.atomic_add float32 into zeros."
        ),
        "Add in float32 and convert at the end: a float16 atomic sum is not accurate.",
        "The output has shape (), not (1,).",
    ),
    "techniques": (
        "online_reduction",
        "split_k",
        "row_per_program",
        "kernel_fusion",
        "autotune",
        "speculative_maximum",
        "tiling",
        "coalescing",
    ),
    "pattern": "fused",
    "backward": {"returned": ("logits",)},
}
VERSION_HINTS = {
    "v1": {
        "technique": (
            "Row per program: log-sum-exp in one block and a loss per row, averaged by a second "
            "small kernel"
        ),
        "block_hint": "BLOCK_SIZE next_power_of_2(n_classes)",
    },
    "v2": {
        "technique": "Online reduction with tiling: one pass over blocks of a row",
        "block_hint": "BLOCK_SIZE 512 to 4096 along the row",
    },
    "v3": {
        "technique": (
            "Memory coalescing: several short rows a program; tl.atomic_add of float32 instead of "
            "the second kernel"
        ),
        "block_hint": "rows x BLOCK_SIZE of about 1024 to 4096 elements, num_warps 4 to 8",
    },
    "v4": {
        "technique": (
            "Online reduction where the row is long, several rows where it is short, autotuned"
        ),
        "block_hint": "num_warps 4 to 16, growing with BLOCK_SIZE",
    },
}


def make_inputs(
    shape: tuple[int, ...], dtype: torch.dtype, device: torch.device, generator: torch.Generator
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return normal logits [rows, classes]; uniform target [rows], the last class in the last."""
    rows, classes = shape
    logits = torch.randn((rows, classes), dtype=dtype, device=device, generator=generator)
    target = torch.randint(classes, (rows,), device=device, generator=generator)
    target[1:][-1:] = classes - 1  # few targets seldom come to the end
    return logits, target


def sure_and_right(
    shape: tuple[int, ...], dtype: torch.dtype, device: torch.device, generator: torch.Generator
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return logits that are 8 to 15.4 at the target and about 0 elsewhere: the rest is the loss.

    Each of the other classes adds so little to it that float32 barely holds it. The target
    is near either end of a row, so that most others come after it.
    """
    logits, target = make_inputs(shape, torch.float32, device, generator)
    target = target // 8
    is_last = torch.rand(target.shape, device=device, generator=generator) < 0.5
    target = torch.where(is_last, shape[1] - 1 - target, target)
    depth = 15.4 - 7.4 * torch.rand((), device=device, generator=generator) ** 3
    logits = (logits * 0.01).scatter(1, target[:, None], depth.item())
    return logits.to(dtype), target


VALUES = {"sure and right": sure_and_right}


def reference(logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Return a scalar, shape (), of the logits' dtype."""
    return F.cross_entropy(logits, target)


def exact(logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Compute the reference for some rows at a time: torch would hold the log-softmax of all."""
    rows = max(1, elements_at_once(logits.device) // logits.shape[1])
    parts = zip(logits.split(rows), target.split(rows), strict=True)
    total = torch.stack([F.cross_entropy(x, t, reduction="sum") for x, t in parts]).sum()
    return total / len(target)


def flops(logits: torch.Tensor, target: torch.Tensor) -> int:
    """Count max, subtraction, exp and sum: four an element."""
    return 4 * logits.numel()
