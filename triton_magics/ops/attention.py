"""out = softmax(q @ k^T / sqrt(head_dim)) @ v, for each batch and head.

q, k, v and out are [batch, heads, seq, head_dim], and so is a shape.
"""

from __future__ import annotations

import torch
from torch.nn import functional as F

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
REGIMES_SKIP = ("large", "mean_heavy", "negative")


def make_inputs(
    shape: tuple[int, ...], dtype: torch.dtype, device: torch.device, generator: torch.Generator
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Normal q, k and v."""
    q = torch.randn(shape, dtype=dtype, device=device, generator=generator)
    k = torch.randn(shape, dtype=dtype, device=device, generator=generator)
    v = torch.randn(shape, dtype=dtype, device=device, generator=generator)
    return q, k, v


def reference(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """The same shape and dtype as q."""
    return F.scaled_dot_product_attention(q, k, v)


def scratch(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> int:
    """The scores: in float64 torch keeps them, [batch, heads, seq, seq]."""
    return q.shape[:-1].numel() * k.shape[-2]


def flops(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> int:
    """Two products, of 2 * seq * seq * head_dim each, for each batch and head."""
    return 4 * q.numel() * k.shape[-2]
