"""out = mean over rows of logsumexp(x[i] @ weight^T) - x[i] @ weight[target[i]]; a scalar.

The last layer of a language model and its loss in one. x is [rows, hidden], weight [classes,
hidden], target [rows] int64; a shape is (rows, classes, hidden).
"""

from __future__ import annotations

import torch
from torch.nn import functional as F

from triton_magics.operators._memory import elements_at_once

SIZES = {"small": (256, 1024, 256), "medium": (1024, 4096, 512), "large": (2048, 32000, 2048)}
SHAPES = (
    (1, 1, 1), (7, 5, 13), (17, 33, 1), (1, 129, 65), (129, 2, 64), (65, 127, 129), (3, 1000, 31),
    (1, 257, 1025),
)  # fmt: skip
DTYPES = ("float32", "float16", "bfloat16")
OP_CLASS = "matmul"
DEFINED_FOR_NONFINITE = True  # the mean is NaN where the loss of a row is
# The product of two large numbers is infinite, of two tiny ones zero: nothing is left to compare.
REGIMES_SKIP = ("large", "tiny", "mean_heavy", "negative", "rows at -20000", "block of -inf")
FACTS = {
    "aliases": ("fused_linear_cross_entropy",),
    "torch_equivalent": "torch.nn.functional.cross_entropy(x @ weight.T, target)",
    "signature": "triton_linear_cross_entropy(x, weight, target)",
    "formula": "out = mean of logsumexp(x[i] @ weight^T) - x[i] @ weight[target[i]]",
    "description": "Last layer and loss in one: the logits are never stored.",
    "input_shapes": (
        "x: [n, hidden]; weight: [classes, hidden]; target: [n], int64; a shape is "
        "(n, classes, hidden)"
    ),
    "output_shape": "a scalar, shape ()",
    "complexity": (
        "2·n·classes·hidden flops; (n + classes)·hidden·itemsize bytes when the logits are never "
        "stored"
    ),
    "memory_pattern": "a tile of x stays, tiles of weight stream past",
    "bound": "compute",
    "tips": (
        "Keep a running maximum and a running sum of each row, as attention does.",
        "The target's logit is in one of the tiles: pick it with tl.where and a sum.",
        "Few rows make few programs: split the classes, and join maximum and sum at the end.",
        "torch stores the logits, rows x classes, which are often the largest tensor of a step.",
    ),
    "techniques": (
        "online_reduction",
        "tiling",
        "kernel_fusion",
        "split_k",
        "tensor_descriptors",
        "autotune",
    ),
    "pattern": "fused",
    "backward": {"returned": ("x", "weight")},
}
VERSION_HINTS = {
    "v1": {
        "technique": "Online reduction: a block of rows a program walks along the classes",
        "block_hint": "BLOCK_M 32, BLOCK_N 64, BLOCK_K 32",
    },
    "v2": {
        "technique": "The classes split over programs; a second kernel joins the parts",
        "block_hint": "BLOCK_M 64, BLOCK_N 128, BLOCK_K 64",
    },
    "v3": {
        "technique": "Large tiles, one a program, ordered so that weight is read from the cache",
        "block_hint": "BLOCK_M 128, BLOCK_N 256, BLOCK_K 64, num_warps 8, num_stages 3",
    },
    "v4": {
        "technique": "Tensor descriptors, a persistent grid, autotuned by rows and classes",
        "block_hint": "BLOCK_M 128, BLOCK_N 128 to 256, num_warps 8, num_stages 3 to 4",
    },
}


def make_inputs(
    shape: tuple[int, ...], dtype: torch.dtype, device: torch.device, generator: torch.Generator
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return normal x and weight, for logits of about 1; uniform target, the last class last."""
    rows, classes, hidden = shape
    x = torch.randn((rows, hidden), dtype=torch.float32, device=device, generator=generator)
    weight = torch.randn((classes, hidden), dtype=torch.float32, device=device, generator=generator)
    target = torch.randint(classes, (rows,), device=device, generator=generator)
    target[1:][-1:] = classes - 1  # few targets seldom come to the end
    return x.to(dtype), (weight / max(hidden, 1) ** 0.5).to(dtype), target


def sure_and_right(
    shape: tuple[int, ...], dtype: torch.dtype, device: torch.device, generator: torch.Generator
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return rows that are alike and of one class, whose logit is 8 to 15.4; others are about 0.

    Each of the other classes adds so little to the loss that float32 barely holds it. The
    class is near either end, so that most others come after it.
    """
    x, weight, target = make_inputs(shape, torch.float32, device, generator)
    turned, power = torch.rand(2, device=device, generator=generator).tolist()
    place = int(target[0]) // 8
    place = shape[1] - 1 - place if turned < 0.5 else place
    weight *= 0.01
    weight[place] = (15.4 - 7.4 * power**3) / max(shape[2], 1)
    return (1 + x * 0.01).to(dtype), weight.to(dtype), torch.full_like(target, place)


VALUES = {"sure and right": sure_and_right}


def reference(x: torch.Tensor, weight: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Return a scalar, shape (), of x's dtype."""
    return F.cross_entropy(F.linear(x, weight), target)


def exact(x: torch.Tensor, weight: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Compute the reference for some rows at a time: torch would hold the logits of all."""
    rows = max(1, elements_at_once(x.device) // max(weight.shape[0], 1))
    parts = zip(x.split(rows), target.split(rows), strict=True)
    losses = [F.cross_entropy(F.linear(a, weight), t, reduction="sum") for a, t in parts]
    return torch.stack(losses).sum() / len(target)


def flops(x: torch.Tensor, weight: torch.Tensor, target: torch.Tensor) -> int:
    """Count the product, and max, subtraction, exp and sum a logit."""
    return 2 * x.shape[0] * weight.numel() + 4 * x.shape[0] * weight.shape[0]
