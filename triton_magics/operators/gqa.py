"""Grouped-query attention: heads of queries share a head of keys and values.

out = softmax(q @ k^T / sqrt(head_dim) + mask) @ v, with k and v of head h // (heads / kv_heads) for
head h of q. With is_causal the mask is -inf where the key comes after the query, else 0. q and out
are [batch, heads, seq, head_dim], k and v [batch, kv_heads, seq, head_dim]; a shape is (batch,
heads, kv_heads, seq, head_dim), heads a multiple of kv_heads.
"""

from __future__ import annotations

import torch
from torch.nn import functional as F

from triton_magics.operators import mha
from triton_magics.operators._draws import scalars_of

SIZES = {
    "small": (1, 8, 2, 256, 64), "medium": (1, 16, 4, 1024, 64), "large": (1, 32, 8, 4096, 128),
}  # fmt: skip
SHAPES = (
    (1, 1, 1, 1, 64), (1, 2, 1, 7, 64), (1, 6, 2, 127, 64), (2, 6, 3, 65, 96), (1, 3, 1, 129, 128),
    (1, 8, 2, 33, 80), (3, 4, 4, 257, 16), (1, 2, 1, 1023, 64),
)  # fmt: skip
EXTENTS = {
    "head_dim over 128": (1, 4, 2, 33, 160),
    "head_dim 256": (1, 2, 1, 17, 256),
    "over 65,535 heads": (257, 256, 1, 1, 16),
    "over 128 batches": (129, 1, 1, 2, 16),  # without a GPU, in place of those
    "over 128 heads": (1, 129, 1, 2, 16),
    "over 8 tiles of positions": (1, 2, 1, 545, 16),
    "long sequence": (1, 2, 1, 16_385, 16),
    "groups of 15 heads": (1, 15, 1, 385, 16),  # a row divided by 15 or 7, by a reciprocal
    "groups of 7 heads": (1, 7, 1, 4_097, 16),
}
DTYPES = ("float32", "float16", "bfloat16")
OP_CLASS = "matmul"
INDEPENDENT = (0, 0, 0, None)
# A masked or padded score times an Inf in v is NaN in one sound way of computing it, 0 in another.
DEFINED_FOR_NONFINITE = False
# Scores of large q and k, or of q and k with a large mean (5e6, where float32 steps by a half),
# round to anything: the softmax then picks keys at random, torch's too.
REGIMES_SKIP = ("large", "mean_heavy", "negative", "rows at -20000")
# As in mha: products of ds would be past what a half type holds, or cancel.
GRADIENTS_SKIP = ("products past 65504", "largest at the end")
SCALARS = {"is_causal": (True, False)}
FACTS = {
    "aliases": ("grouped_query_attention",),
    "torch_equivalent": (
        "torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=is_causal, "
        "enable_gqa=True)"
    ),
    "signature": "triton_gqa(q, k, v, is_causal=False)",
    "formula": (
        "out[h] = softmax(q[h] @ k[h // group]^T / sqrt(d) + mask) @ v[h // group], group = heads "
        "/ kv_heads; mask is -inf where the key comes after the query, if causal"
    ),
    "description": "Attention in which a group of heads shares keys and values.",
    "input_shapes": (
        "q: [batch, heads, seq, d]; k, v: [batch, kv_heads, seq, d]; is_causal: a bool; a shape is "
        "(batch, heads, kv_heads, seq, d), heads a multiple of kv_heads"
    ),
    "output_shape": "the shape of q",
    "complexity": (
        "4·b·h·s²·d flops, about half of them with the mask; 2·b·(h + kv_heads)·s·d·itemsize bytes "
        "when the scores are never stored"
    ),
    "memory_pattern": (
        "a tile of q stays, tiles of k and v stream past; a group reads the same tiles, from the "
        "L2 cache where its programs run side by side"
    ),
    "bound": "compute",
    "tips": (
        "q[:, h] belongs to k[:, h // group], not to k[:, h % kv_heads].",
        "Never repeat k and v in memory: that undoes what the op saves.",
        "Order the programs so that those of a group run at the same time.",
        "Make is_causal and the group tl.constexpr: no branch, and the division is a shift.",
        "Everything that holds for mha: online reduction, float32 accumulators, masked keys.",
    ),
    "techniques": (
        "online_reduction",
        "tiling",
        "kernel_fusion",
        "tensor_descriptors",
        "warp_specialization",
        "persistent",
        "speculative_maximum",
        "tf32x3",
        "limbs",
        "autotune",
    ),
    "pattern": "fused",
    "backward": {"returned": ("q", "k", "v")},
}
VERSION_HINTS = {
    "v1": {
        "technique": (
            "Online reduction: one tile of queries of one head a program, one pass over the keys "
            "of head h // group"
        ),
        "block_hint": "BLOCK_M 64 to 128, BLOCK_N 32 to 64",
    },
    "v2": {
        "technique": (
            "Tensor descriptors, exp2 with the scale folded in, tiles after the diagonal skipped"
        ),
        "block_hint": "BLOCK_M 64, BLOCK_N 128, num_warps 4, num_stages 3",
    },
    "v3": {
        "technique": "Larger tiles for each size, or the heads of a group as rows of one tile",
        "block_hint": "BLOCK_M 64 to 128, BLOCK_N 32 to 128, num_warps 4 or 8, num_stages 2 to 4",
    },
    "v4": {
        "technique": (
            "A persistent grid with warp specialization, long blocks of queries first and the "
            "heads of a group side by side"
        ),
        "block_hint": "128 queries by 128 keys, two warps that load, two groups that compute",
    },
}


def make_inputs(
    shape: tuple[int, ...], dtype: torch.dtype, device: torch.device, generator: torch.Generator
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, bool]:
    """Return normal q, k, v and is_causal: random, but True at the sizes, to time one work."""
    batch, heads, kv_heads, *rest = shape
    q, k, v = (
        torch.randn((batch, n, *rest), dtype=dtype, device=device, generator=generator)
        for n in (heads, kv_heads, kv_heads)
    )
    either = scalars_of(generator).choice((False, True))
    return q, k, v, either or tuple(shape) in SIZES.values()


def reference(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, is_causal: bool = False
) -> torch.Tensor:
    """Return a tensor of the same shape and dtype as q."""
    return F.scaled_dot_product_attention(q, k, v, is_causal=is_causal, enable_gqa=True)


def exact(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, is_causal: bool = False
) -> torch.Tensor:
    """Compute the reference for some queries at a time: torch would hold the scores of all."""
    group = q.shape[1] // k.shape[1]
    k, v = (x.repeat_interleave(group, dim=1) for x in (k, v))
    return mha.exact(q, k, v, is_causal)


def scratch(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, is_causal: bool = False) -> int:
    """Count the scores: in float64 torch stores them, [batch, heads, seq, seq]."""
    return mha.scratch(q, k, v)


def flops(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, is_causal: bool = False) -> int:
    """Count two products, of 2 * head_dim operations for each pair of a query and a key it sees."""
    return mha.flops(q, k, v, is_causal)
