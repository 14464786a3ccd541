"""out = softmax(q @ k^T / sqrt(head_dim)) @ v, for each batch and head.

q, k, v and out are [batch, heads, seq, head_dim], and so is a shape.
"""

from __future__ import annotations

import torch
from torch.nn import functional as F

from triton_magics.operators import mha

SIZES = {"small": (1, 4, 256, 64), "medium": (1, 8, 1024, 64), "large": (1, 16, 4096, 64)}
SHAPES = (
    (1, 1, 1, 64), (1, 1, 7, 64), (1, 2, 127, 64), (2, 3, 65, 32), (1, 1, 129, 128), (1, 2, 33, 80),
    (1, 1, 257, 16), (1, 1, 1023, 64),
)  # fmt: skip
DTYPES = ("float32", "float16", "bfloat16")
OP_CLASS = "matmul"
INDEPENDENT = (2, None, None)
# A masked or padded score times an Inf in v is NaN in one sound way of computing it, 0 in another.
DEFINED_FOR_NONFINITE = False
# Scores of large q and k, or of q and k with a large mean (5e6, where float32 steps by a half),
# round to anything: the softmax then picks keys at random, torch's too.
REGIMES_SKIP = ("large", "mean_heavy", "negative", "rows at -20000")
# All keys are nearly alike there, and the products of ds with them cancel: a ds rounded to a half
# type, as every fused kernel has it, leaves any remainder. With the largest values at the end of
# both factors, a ds may be past 65,504.
GRADIENTS_SKIP = ("products past 65504", "largest at the end")
FACTS = {
    "torch_equivalent": "torch.nn.functional.scaled_dot_product_attention(q, k, v)",
    "signature": "triton_attention(q, k, v)",
    "formula": "out = softmax(q @ k^T / sqrt(d)) @ v",
    "description": "Scaled dot-product attention for each batch and head.",
    "input_shapes": "q, k, v: [batch, heads, seq, head_dim]",
    "output_shape": "the shape of q",
    "complexity": "4·b·h·s²·d flops; 4·b·h·s·d·itemsize bytes when the scores are never stored",
    "memory_pattern": (
        "a tile of q stays, tiles of k and v stream past; k and v are read once per tile of q"
    ),
    "bound": "compute",
    "tips": (
        (
            "Online reduction: keep a running maximum, a running sum and an output tile; scale "
            "sum and tile when the maximum grows."
        ),
        "Mask keys past seq with -inf before the maximum, and load their v with other=0.",
        "The scale is 1 / sqrt(head_dim); with tl.exp2, fold in 1.4426950408889634.",
        "Maximum, sum and output tile in float32; convert p to v's dtype for the second tl.dot.",
        'float32 inputs need input_precision="tf32x3" or "ieee" in both products.',
        "A head_dim that is no power of two: mask it, or refuse it with a ValueError.",
    ),
    "techniques": (
        "online_reduction",
        "tiling",
        "kernel_fusion",
        "tf32x3",
        "limbs",
        "autotune",
        "tensor_descriptors",
        "warp_specialization",
        "persistent",
        "speculative_maximum",
        "recomputation",
    ),
    "pattern": "fused",
    "backward": {"returned": ("q", "k", "v")},
}
VERSION_HINTS = {
    "v1": {
        "technique": (
            "One to one: one tile of queries a program, two passes over the keys, one for maximum "
            "and sum, one for the output"
        ),
        "block_hint": "BLOCK_M 64, BLOCK_N 64",
    },
    "v2": {
        "technique": (
            "Online reduction with tiling: one pass over the keys, sum and output tile rescaled "
            "as the maximum grows"
        ),
        "block_hint": "BLOCK_M 64 to 128, BLOCK_N 32 to 64",
    },
    "v3": {
        "technique": (
            "Memory access: k and v loaded in tiles along head_dim, a pipelined loop, exp2 with "
            "the scale folded in"
        ),
        "block_hint": "BLOCK_M 128, BLOCK_N 64, num_stages 2 to 4",
    },
    "v4": {
        "technique": "Online reduction, pipelined loads and autotune together",
        "block_hint": "BLOCK_M 64 to 128, BLOCK_N 32 to 128, num_warps 4 or 8, num_stages 2 to 4",
    },
    "more": {
        "technique": (
            "Tensor descriptors; float32 in limbs of float16; rows reduced in two steps, so that "
            "fewer operations wait for each other"
        ),
        "block_hint": (
            "BLOCK_M 64, BLOCK_N 128, num_warps 4, num_stages 3; BLOCK_M 16 where there are few "
            "queries"
        ),
    },
}


def make_inputs(
    shape: tuple[int, ...], dtype: torch.dtype, device: torch.device, generator: torch.Generator
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return normal q, k and v."""
    q = torch.randn(shape, dtype=dtype, device=device, generator=generator)
    k = torch.randn(shape, dtype=dtype, device=device, generator=generator)
    v = torch.randn(shape, dtype=dtype, device=device, generator=generator)
    return q, k, v


def reference(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Return a tensor of the same shape and dtype as q."""
    return F.scaled_dot_product_attention(q, k, v)


def exact(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Compute the reference for some queries at a time: in float64 torch would hold all scores."""
    return mha.exact(q, k, v)


def scratch(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> int:
    """Count the scores: in float64 torch stores them, [batch, heads, seq, seq]."""
    return q.shape[:-1].numel() * k.shape[-2]


def flops(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> int:
    """Count two products, of 2 * seq * seq * head_dim each, for each batch and head."""
    return 4 * q.numel() * k.shape[-2]
