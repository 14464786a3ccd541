"""Batches and heads are walked as one dimension after a look at the strides inside a batch, not at the batch's own.

op: mha
status: failed
cause: layout
"""

import torch
import triton
import triton.language as tl


@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, seq, dim, scale,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr, CAUSAL: tl.constexpr,
):
    tiles = tl.cdiv(seq, BLOCK_M)
    head = (tl.program_id(0) // tiles).to(tl.int64)
    tile = tl.program_id(0) % tiles
    rows = tile * BLOCK_M + tl.arange(0, BLOCK_M)
    ds = tl.arange(0, BLOCK_D)
    inside = (rows < seq)[:, None] & (ds < dim)[None, :]
    places = head * seq * dim + rows[:, None].to(tl.int64) * dim + ds[None, :]
    q = tl.load(q_ptr + places, mask=inside, other=0.0)
    k_ptr += head * seq * dim
    v_ptr += head * seq * dim
    largest = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
    end = seq
    if CAUSAL:
        end = tl.minimum(seq, (tile + 1) * BLOCK_M)
    for start in range(0, end, BLOCK_N):
        cols = (start + tl.arange(0, BLOCK_N)).to(tl.int64)
        k = tl.load(
            k_ptr + cols[None, :] * dim + ds[:, None],
            mask=(cols < seq)[None, :] & (ds < dim)[:, None], other=0.0,
        )
        s = tl.dot(q, k, input_precision="tf32x3") * scale
        mask = (cols < seq)[None, :]
        if CAUSAL:
            mask = mask & (cols[None, :] <= rows[:, None])
        s = tl.where(mask, s, -float("inf"))
        new = tl.maximum(largest, tl.max(s, axis=1))
        p = tl.exp2(s - new[:, None])
        shrink = tl.exp2(largest - new)
        total = total * shrink + tl.sum(p, axis=1)
        v = tl.load(
            v_ptr + cols[:, None] * dim + ds[None, :],
            mask=(cols < seq)[:, None] & (ds < dim)[None, :], other=0.0,
        )
        acc = tl.dot(p.to(v.dtype), v, acc * shrink[:, None], input_precision="tf32x3")
        largest = new
    tl.store(out_ptr + places, acc / total[:, None], mask=inside)


def is_packed(x):
    """Heads that follow each other without a gap: the usual layout, taken as it is; others are copied."""
    seq, dim = x.shape[2:]
    return x if x.stride()[1:] == (seq * dim, dim, 1) else x.contiguous()


def triton_mha(q, k, v, is_causal=False):
    batch, heads, seq, dim = q.shape
    out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    if out.numel():
        BLOCK_M = 32 if dim > 128 else 64
        attention_kernel[(triton.cdiv(seq, BLOCK_M) * batch * heads,)](
            is_packed(q), is_packed(k), is_packed(v), out, seq, dim, dim**-0.5 * 1.4426950408889634,
            BLOCK_M=BLOCK_M, BLOCK_N=32, BLOCK_D=max(16, triton.next_power_of_2(dim)),
            CAUSAL=bool(is_causal), num_warps=4,
        )
    return out
