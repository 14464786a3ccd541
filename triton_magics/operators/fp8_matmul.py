"""out = (a @ b^T) * scale_a[:, None] * scale_b: a and b in float8 (e4m3), one scale a row.

a is [m, k] and b [n, k], both float8_e4m3fn; scale_a is [m] and scale_b [n], in the output's dtype.
A shape is (m, n, k).
"""

from __future__ import annotations

import torch
from torch.nn import functional as F

SIZES = {"small": (256, 256, 256), "medium": (1024, 1024, 1024), "large": (4096, 4096, 4096)}
SHAPES = (
    (1, 1, 1), (7, 5, 13), (17, 33, 1), (1, 129, 65), (129, 1, 64), (65, 127, 129), (127, 65, 257),
    (3, 31, 1025), (33, 64, 272),
)  # fmt: skip
DTYPES = ("float16", "bfloat16")
OP_CLASS = "matmul"
# A tile's padding may meet an Inf as 0 * Inf.
DEFINED_FOR_NONFINITE = False
# The product of two large numbers is infinite, of two tiny ones zero: nothing is left to compare.
REGIMES_SKIP = ("large", "tiny")
TYPICAL = 64.0  # of the quantised values: four standard deviations are inside e4m3's 448
FACTS = {
    "aliases": ("float8_matmul", "w8a8"),
    "torch_equivalent": "torch._scaled_mm(a, b.T, scale_a[:, None], scale_b[None])",
    "signature": "triton_fp8_matmul(a, b, scale_a, scale_b)",
    "formula": "out[i, j] = scale_a[i] * scale_b[j] * sum over l of a[i, l] * b[j, l]",
    "description": "Product of two float8 (e4m3) matrices with a scale for each row.",
    "input_shapes": (
        "a: [m, k], b: [n, k], both float8_e4m3fn; scale_a: [m]; scale_b: [n]; a shape is (m, n, k)"
    ),
    "output_shape": "[m, n], of the scales' dtype",
    "complexity": "2·m·n·k flops; m·k + n·k + m·n·itemsize bytes",
    "memory_pattern": (
        "tiles of a and b are read once per row and column of tiles, a byte an element; the output "
        "is written once"
    ),
    "bound": "compute",
    "tips": (
        "tl.dot takes float8 operands from sm_89 on, at twice the rate of the half types.",
        (
            "Hopper's tensor cores add float8 products in fewer bits than float32 has: add their "
            "sums of 128 products in float32, by max_num_imprecise_acc=128."
        ),
        "Scale the accumulator once at the end, in float32: unscaled sums exceed float16's range.",
        "Both tiles must have k contiguous: tensor cores take float8 in no other order.",
        "float8 e4m3 fits into float16 exactly: convert, where a GPU has no float8 tensor cores.",
    ),
    "techniques": (
        "tiling",
        "tensor_descriptors",
        "swizzle",
        "persistent",
        "warp_specialization",
        "autotune",
        "split_k",
    ),
    "pattern": "matmul",
    "backward": {"returned": ("scale_a", "scale_b")},
}
VERSION_HINTS = {
    "v1": {
        "technique": "One to one: a tile of the output a program, float8 converted to float16",
        "block_hint": "BLOCK_M 64, BLOCK_N 64, BLOCK_K 64",
    },
    "v2": {
        "technique": "Tensor cores of float8, sums of 128 products added in float32",
        "block_hint": "BLOCK_M 128, BLOCK_N 128, BLOCK_K 128, num_warps 8, num_stages 3",
    },
    "v3": {
        "technique": "Program swizzle: groups of tile rows that share tiles in the L2 cache",
        "block_hint": "groups of 8 tile rows; tiles as in v2",
    },
    "v4": {
        "technique": "Tensor descriptors, a persistent grid, a tile for each size",
        "block_hint": "BLOCK_M 64 to 128, BLOCK_N 64 to 256, BLOCK_K 128, num_stages 3 to 5",
    },
}


def make_inputs(
    shape: tuple[int, ...], dtype: torch.dtype, device: torch.device, generator: torch.Generator
) -> tuple[torch.Tensor, ...]:
    """Return a [m, k] and b [n, k] of about 64 in float8; scales of about 1 / 64."""
    m, n, k = shape
    options: dict[str, object] = {"device": device, "generator": generator}
    drawn = (torch.randn(rows, k, **options) for rows in (m, n))
    a, b = ((TYPICAL * x).clamp(-448, 448).to(torch.float8_e4m3fn) for x in drawn)
    scales = (torch.rand(rows, **options) + 0.5 for rows in (m, n))
    scale_a, scale_b = ((x / TYPICAL).to(dtype) for x in scales)
    return a, b, scale_a, scale_b


def reference(
    a: torch.Tensor, b: torch.Tensor, scale_a: torch.Tensor, scale_b: torch.Tensor
) -> torch.Tensor:
    """Return [m, n] of the scales' dtype; on a GPU by torch's product of float8, where it fits.

    That product has no gradient, so scales that need one get the other path.
    """
    if _is_for_scaled_mm(a, b, scale_a):
        scales = scale_a[:, None].float(), scale_b[None].float()
        product: torch.Tensor = torch._scaled_mm(a, b.T, *scales, out_dtype=scale_a.dtype)
        return product
    wide = torch.float64 if scale_a.dtype == torch.float64 else torch.float32
    exact = F.linear(a.to(wide), b.to(wide)) * scale_a[:, None].to(wide) * scale_b.to(wide)
    return exact.to(scale_a.dtype)


def _is_for_scaled_mm(a: torch.Tensor, b: torch.Tensor, scale: torch.Tensor) -> bool:
    """Return whether torch has a kernel: bfloat16 out, rows of whole 16 bytes, contiguous k."""
    rows = all(x.stride(-1) == 1 and x.stride(0) % 16 == 0 for x in (a, b))
    whole = rows and a.shape[1] % 16 == 0 and b.shape[0] % 16 == 0 and a.numel() > 0
    is_float8 = a.dtype == b.dtype == torch.float8_e4m3fn
    fits = a.is_cuda and is_float8 and whole and scale.dtype == torch.bfloat16
    return fits and not scale.requires_grad


def flops(a: torch.Tensor, b: torch.Tensor, scale_a: torch.Tensor, scale_b: torch.Tensor) -> int:
    """Count one multiplication and one addition for each of m * n * k, and the scaling."""
    return 2 * a.shape[0] * b.numel() + 2 * a.shape[0] * b.shape[0]
