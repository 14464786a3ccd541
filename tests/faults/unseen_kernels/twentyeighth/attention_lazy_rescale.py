"""Right: sum and output are rescaled only where a row's maximum has grown by more than 8 in base 2, so that weights reach 256; the keys are walked from the last tile to the first.

op: attention
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, heads, seq, dim, scale,
    q_b, q_h, q_s, q_d, k_b, k_h, k_s, k_d, v_b, v_h, v_s, v_d,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):
    head = tl.program_id(0).to(tl.int64) // tl.cdiv(seq, BLOCK_M)
    tile = tl.program_id(0) % tl.cdiv(seq, BLOCK_M)
    b, h = head // heads, head % heads
    rows = tile * BLOCK_M + tl.arange(0, BLOCK_M).to(tl.int64)
    ds = tl.arange(0, BLOCK_D)
    inside = (rows < seq)[:, None] & (ds < dim)[None, :]
    q = tl.load(q_ptr + b * q_b + h * q_h + rows[:, None] * q_s + ds[None, :] * q_d, mask=inside, other=0.0)
    k_ptr += b * k_b + h * k_h
    v_ptr += b * v_b + h * v_h
    shift = tl.full((BLOCK_M,), -1e30, tl.float32)  # at least the maximum so far, less 8
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
    tiles = tl.cdiv(seq, BLOCK_N)
    for i in range(tiles):
        cols = (tiles - 1 - i) * BLOCK_N + tl.arange(0, BLOCK_N).to(tl.int64)
        here = (cols < seq)[:, None] & (ds < dim)[None, :]
        k = tl.load(k_ptr + cols[:, None] * k_s + ds[None, :] * k_d, mask=here, other=0.0)
        s = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        s = tl.where((cols < seq)[None, :], s, -float("inf"))
        peak = tl.max(s, axis=1)
        grown = peak > shift + 8.0
        if tl.max(grown.to(tl.int32), axis=0) > 0:
            new = tl.where(grown, peak, shift)
            shrink = tl.exp2(shift - new)  # 1 in rows that have not grown
            total *= shrink
            acc *= shrink[:, None]
            shift = new
        p = tl.exp2(s - shift[:, None])  # at most 2**8: far from the largest float16
        total += tl.sum(p, axis=1)
        v = tl.load(v_ptr + cols[:, None] * v_s + ds[None, :] * v_d, mask=here, other=0.0)
        acc = tl.dot(p.to(v.dtype), v, acc, input_precision="ieee")
    tl.store(out_ptr + head * seq * dim + rows[:, None] * dim + ds[None, :], acc / total[:, None], mask=inside)


def triton_attention(q, k, v):
    batch, heads, seq, dim = q.shape
    out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    if out.numel():
        attention_kernel[(triton.cdiv(seq, 64) * batch * heads,)](
            q, k, v, out, heads, seq, dim, dim**-0.5 * 1.4426950408889634,
            *q.stride(), *k.stride(), *v.stride(),
            BLOCK_M=64, BLOCK_N=32, BLOCK_D=max(16, triton.next_power_of_2(dim)),
        )
    return out
