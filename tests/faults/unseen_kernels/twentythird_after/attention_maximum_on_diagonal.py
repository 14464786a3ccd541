"""If q and k are the same tensor, a row's maximum is taken to be its score with itself: a key much longer than the query overflows.

op: attention
status: failed
cause: overflow
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, seq, dim, scale,
    SELF: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):
    base = tl.program_id(1).to(tl.int64) * seq * dim
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    ds = tl.arange(0, BLOCK_D)
    inside = (rows < seq)[:, None] & (ds < dim)[None, :]
    places = rows[:, None].to(tl.int64) * dim + ds[None, :]
    q = tl.load(q_ptr + base + places, mask=inside, other=0.0)
    if q.dtype == tl.bfloat16:  # its products in float32: nothing is rounded in between
        q = q.to(tl.float32)
    if SELF:  # known beforehand: no running maximum, nothing to rescale
        wide = q.to(tl.float32)
        largest = tl.sum(wide * wide, axis=1) * scale
    else:
        largest = tl.full((BLOCK_M,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BLOCK_M,), dtype=tl.float32)
    acc = tl.zeros((BLOCK_M, BLOCK_D), dtype=tl.float32)
    for start in range(0, seq, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N)
        here = (cols < seq)[:, None] & (ds < dim)[None, :]
        from_ = base + cols[:, None].to(tl.int64) * dim + ds[None, :]
        k = tl.load(k_ptr + from_, mask=here, other=0.0).to(q.dtype)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        scores = tl.where((cols < seq)[None, :], scores, -float("inf"))
        if not SELF:
            new = tl.maximum(largest, tl.max(scores, axis=1))
            rescale = tl.exp(largest - new)
            total *= rescale
            acc *= rescale[:, None]
            largest = new
        p = tl.exp(scores - largest[:, None])
        total += tl.sum(p, axis=1)
        v = tl.load(v_ptr + from_, mask=here, other=0.0).to(q.dtype)
        acc = tl.dot(p.to(v.dtype), v, acc, input_precision="ieee")
    tl.store(out_ptr + base + places, acc / total[:, None], mask=inside)


def triton_attention(q, k, v):
    same = q.data_ptr() == k.data_ptr() and q.stride() == k.stride()
    q, v = q.contiguous(), v.contiguous()
    k = q if same else k.contiguous()
    batch, heads, seq, dim = q.shape
    out = torch.empty_like(q)
    if out.numel():
        kernel[(triton.cdiv(seq, 32), batch * heads)](
            q, k, v, out, seq, dim, dim**-0.5, SELF=same, BLOCK_M=32, BLOCK_N=32,
            BLOCK_D=max(16, triton.next_power_of_2(dim)),
        )
    return out
