"""A tile of keys whose weights are all under 2**-12 of the largest is skipped: a thousand such keys weigh a lot together.

op: mha
status: failed
cause: skipping
"""

import math

import torch
import triton
import triton.language as tl


@triton.jit
def mha_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, seq, dim, scale,
    CAUSAL: tl.constexpr, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr,
):
    head = tl.program_id(1).to(tl.int64) * seq * dim
    rows = tl.program_id(0) * M + tl.arange(0, M)
    d = tl.arange(0, D)
    q_mask = (rows < seq)[:, None] & (d < dim)[None, :]
    at = head + rows[:, None] * dim + d[None, :]
    q = tl.load(q_ptr + at, mask=q_mask, other=0.0)
    peak = tl.full((M,), -float("inf"), tl.float32)
    total = tl.zeros((M,), tl.float32)
    acc = tl.zeros((M, D), tl.float32)
    end = tl.minimum(seq, (tl.program_id(0) + 1) * M) if CAUSAL else seq
    for start in range(0, end, N):
        keys = start + tl.arange(0, N)
        k = tl.load(
            k_ptr + head + keys[None, :] * dim + d[:, None],
            mask=(keys < seq)[None, :] & (d < dim)[:, None], other=0.0,
        )
        scores = tl.dot(q, k, input_precision="ieee") * scale
        visible = (keys < seq)[None, :]
        if CAUSAL:
            visible = visible & (keys[None, :] <= rows[:, None])
        scores = tl.where(visible, scores, -float("inf"))
        tile_peak = tl.max(scores, axis=1)
        # Weights under 2**-12 are lost in the rounding of the output: spare exp2, v and the product.
        if tl.max(tile_peak - peak, axis=0) > -12.0:
            higher = tl.maximum(peak, tile_peak)
            p = tl.exp2(scores - higher[:, None])
            shrink = tl.exp2(peak - higher)
            v = tl.load(
                v_ptr + head + keys[:, None] * dim + d[None, :],
                mask=(keys < seq)[:, None] & (d < dim)[None, :], other=0.0,
            )
            total = total * shrink + tl.sum(p, axis=1)
            acc = acc * shrink[:, None] + tl.dot(p.to(v.dtype), v, input_precision="ieee")
            peak = higher
    tl.store(out_ptr + at, acc / total[:, None], mask=q_mask)


def triton_mha(q, k, v, is_causal=False):
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    batch, heads, seq, dim = q.shape
    out = torch.empty_like(q)
    if out.numel():
        scale = 1.4426950408889634 / math.sqrt(dim)
        mha_kernel[(triton.cdiv(seq, 64), batch * heads)](
            q, k, v, out, seq, dim, scale,
            CAUSAL=bool(is_causal), M=64, N=64, D=max(16, triton.next_power_of_2(dim)),
        )
    return out
