"""Attention with a causal mask on demand: out = softmax(q @ k^T / sqrt(head_dim) + mask) @ v.

With is_causal the mask is -inf where the key comes after the query, so that position i sees the
keys 0 to i; without it the mask is 0. q, k, v, out and a shape are [batch, heads, seq, head_dim].
"""

from __future__ import annotations

import math

import torch
from torch.nn import functional as F

from triton_magics.operators._draws import scalars_of
from triton_magics.operators._memory import elements_at_once

SIZES = {"small": (1, 4, 256, 64), "medium": (1, 8, 1024, 64), "large": (1, 16, 4096, 64)}
SHAPES = (
    (1, 1, 1, 64), (1, 1, 7, 64), (1, 2, 127, 64), (2, 3, 65, 32), (1, 1, 129, 128), (1, 2, 33, 80),
    (1, 1, 257, 16), (1, 1, 1023, 64),
)  # fmt: skip
DTYPES = ("float32", "float16", "bfloat16")
OP_CLASS = "matmul"
INDEPENDENT = (1, 1, 1, None)
# A masked or padded score times an Inf in v is NaN in one sound way of computing it, 0 in another.
DEFINED_FOR_NONFINITE = False
# Scores of large q and k, or of q and k with a large mean (5e6, where float32 steps by a half),
# round to anything: the softmax then picks keys at random, torch's too.
REGIMES_SKIP = ("large", "mean_heavy", "negative", "rows at -20000")
# All keys are nearly alike there, and the products of ds with them cancel: a ds rounded to a half
# type, as every fused kernel has it, leaves any remainder. With the largest values at the end of
# both factors, a ds may be past 65,504.
GRADIENTS_SKIP = ("products past 65504", "largest at the end")
SCALARS = {"is_causal": (True, False)}
FACTS = {
    "torch_equivalent": (
        "torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=is_causal)"
    ),
    "signature": "triton_mha(q, k, v, is_causal=False)",
    "formula": (
        "out = softmax(q @ k^T / sqrt(d) + mask) @ v; mask is -inf where the key comes after the "
        "query, if causal"
    ),
    "description": "Attention with a causal mask on demand.",
    "input_shapes": "q, k, v: [batch, heads, seq, head_dim]; is_causal: a bool",
    "output_shape": "the shape of q",
    "complexity": (
        "4·b·h·s²·d flops, about half of them with the mask; 4·b·h·s·d·itemsize bytes when the "
        "scores are never stored"
    ),
    "memory_pattern": (
        "a tile of q stays, tiles of k and v stream past; with the mask, those after the query's "
        "tile are not read"
    ),
    "bound": "compute",
    "tips": (
        "Make is_causal a tl.constexpr: two kernels are compiled, neither has a branch.",
        (
            "With the mask, end the loop over keys at the query tile's last row; only the tiles "
            "on the diagonal need the mask itself."
        ),
        "Both values are tested; True is timed.",
        "Everything that holds for attention: online reduction, float32 accumulators, masked keys.",
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
            "and sum, one for the output; is_causal as a tl.constexpr"
        ),
        "block_hint": "BLOCK_M 64, BLOCK_N 64",
    },
    "v2": {
        "technique": (
            "Online reduction with tiling: one pass over the keys, sum and output tile rescaled "
            "as the maximum grows, tiles after the diagonal skipped"
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
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, bool]:
    """Return normal q, k, v and is_causal: random, but True at the sizes, to time one work."""
    q = torch.randn(shape, dtype=dtype, device=device, generator=generator)
    k = torch.randn(shape, dtype=dtype, device=device, generator=generator)
    v = torch.randn(shape, dtype=dtype, device=device, generator=generator)
    either = scalars_of(generator).choice((False, True))
    return q, k, v, either or tuple(shape) in SIZES.values()


def reference(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, is_causal: bool = False
) -> torch.Tensor:
    """Return a tensor of the same shape and dtype as q."""
    return F.scaled_dot_product_attention(q, k, v, is_causal=is_causal)


def exact(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, is_causal: bool = False
) -> torch.Tensor:
    """Compute the reference for some queries at a time: torch would hold the scores of all."""
    (*most, n_queries, head_dim), n_keys = q.shape, k.shape[-2]
    elements = max(elements_at_once(q.device), q.numel() // 4)  # of the scores at a time
    length = max(1, elements // max(1, math.prod(most) * n_keys))
    places = torch.arange(max(n_queries, n_keys), device=q.device)
    out = torch.empty_like(q)
    for start in range(0, n_queries, length):
        rows = slice(start, start + length)
        scores = q[..., rows, :] @ k.transpose(-1, -2) / math.sqrt(head_dim)
        if is_causal:
            later = places[:n_keys] > places[:n_queries][rows, None]
            scores.masked_fill_(later, -math.inf)
        out[..., rows, :] = torch.softmax(scores, dim=-1) @ v
    return out


def scratch(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, is_causal: bool = False) -> int:
    """Count the scores: in float64 torch stores them, [batch, heads, seq, seq]."""
    return q.shape[:-1].numel() * k.shape[-2]


def flops(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, is_causal: bool = False) -> int:
    """Count two products, of 2 * head_dim operations for each pair of a query and a key it sees."""
    batch, heads, seq, head_dim = q.shape
    pairs = seq * (seq + 1) // 2 if is_causal else seq * seq
    return 4 * batch * heads * pairs * head_dim
