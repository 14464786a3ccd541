"""Right: a row's reference follows its maximum only after more than 8 powers of two, for all rows of a tile at once.

op: mha
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit(do_not_specialize=["heads", "seq"])
def attention_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, heads, seq, dim, scale,
    q_b, q_h, q_s, q_d, k_b, k_h, k_s, k_d, v_b, v_h, v_s, v_d,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr, CAUSAL: tl.constexpr,
):
    # One dimension for any number of heads; the last tiles, with most keys, come first.
    tiles = tl.cdiv(seq, BLOCK_M)
    head = (tl.program_id(0) // tiles).to(tl.int64)
    first = (tiles - 1 - tl.program_id(0) % tiles) * BLOCK_M
    b, h = head // heads, head % heads
    rows = first + tl.arange(0, BLOCK_M)
    ds = tl.arange(0, BLOCK_D)
    inside = (rows < seq)[:, None] & (ds < dim)[None, :]
    q_ptr += b * q_b + h * q_h
    k_ptr += b * k_b + h * k_h
    v_ptr += b * v_b + h * v_h
    q = tl.load(q_ptr + rows[:, None].to(tl.int64) * q_s + ds[None, :] * q_d, mask=inside, other=0.0)
    total = tl.zeros((BLOCK_M,), dtype=tl.float32)
    acc = tl.zeros((BLOCK_M, BLOCK_D), dtype=tl.float32)
    # From the last tile of keys to the first: with the mask each row sees its own key, which is in
    # the first tile that is read, or in one of the next where a tile of queries has several.
    reference = tl.full((BLOCK_M,), -float("inf"), dtype=tl.float32)
    end = seq
    if CAUSAL:
        end = tl.minimum(seq, first + BLOCK_M)
    n = tl.cdiv(end, BLOCK_N)
    for i in range(0, n):
        cols = (n - 1 - i) * BLOCK_N + tl.arange(0, BLOCK_N)
        inside_k = (cols < seq)[:, None] & (ds < dim)[None, :]
        k = tl.load(k_ptr + cols[:, None].to(tl.int64) * k_s + ds[None, :] * k_d, mask=inside_k, other=0.0)
        s = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        visible = (cols < seq)[None, :]
        if CAUSAL:
            visible = visible & (cols[None, :] <= rows[:, None])
        s = tl.where(visible, s, -float("inf"))
        largest = tl.max(s, axis=1)
        # Any reference gives the same quotient; within 2^8 no float16 overflows.
        if tl.max((largest > reference + 8.0).to(tl.int32), axis=0) > 0:
            new = tl.maximum(reference, largest)
            shrink = tl.where(reference == -float("inf"), 0.0, tl.exp2(reference - new))
            total *= shrink
            acc *= shrink[:, None]
            reference = new
        # A row without a key so far has no reference: its p are exp2(-inf), 0.
        p = tl.exp2(s - tl.where(reference == -float("inf"), 0.0, reference)[:, None])
        total += tl.sum(p, axis=1)
        v = tl.load(v_ptr + cols[:, None].to(tl.int64) * v_s + ds[None, :] * v_d, mask=inside_k, other=0.0)
        acc = tl.dot(p.to(v.dtype), v, acc, input_precision="ieee")
    out = acc / total[:, None]
    tl.store(out_ptr + (head * seq + rows[:, None]) * dim + ds[None, :], out, mask=inside)


def triton_mha(q, k, v, is_causal=False):
    batch, heads, seq, dim = q.shape
    out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    if out.numel():
        BLOCK_M, BLOCK_N = (32, 16) if q.dtype == torch.float32 or dim > 128 else (64, 32)
        attention_kernel[(triton.cdiv(seq, BLOCK_M) * batch * heads,)](
            q, k, v, out, heads, seq, dim, dim**-0.5 * 1.4426950408889634,
            *q.stride(), *k.stride(), *v.stride(), BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N,
            BLOCK_D=max(16, triton.next_power_of_2(dim)), CAUSAL=bool(is_causal), num_warps=4,
        )
    return out
