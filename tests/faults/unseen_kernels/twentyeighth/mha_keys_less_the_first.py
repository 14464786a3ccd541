"""The first key is taken from all keys, which softmax allows, but in the keys' dtype: where the first key is much larger than the others, little is left of them.

op: mha
status: failed
cause: cancellation
"""

import torch
import triton
import triton.language as tl


@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, heads, seq, dim, scale,
    q_b, q_h, q_s, q_d, k_b, k_h, k_s, k_d, v_b, v_h, v_s, v_d,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr, CAUSAL: tl.constexpr,
):
    head = tl.program_id(0).to(tl.int64)
    b, h = head // heads, head % heads
    rows = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M).to(tl.int64)
    ds = tl.arange(0, BLOCK_D)
    inside = (rows < seq)[:, None] & (ds < dim)[None, :]
    q = tl.load(q_ptr + b * q_b + h * q_h + rows[:, None] * q_s + ds[None, :] * q_d, mask=inside, other=0.0)
    k_ptr += b * k_b + h * k_h
    v_ptr += b * v_b + h * v_h
    # q @ (k - k0) differs from q @ k by one number a row. Keys often share an offset, which only
    # makes scores large: without it they are small and the exponentials exact.
    k0 = tl.load(k_ptr + ds * k_d, mask=ds < dim, other=0.0)
    largest = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
    end = seq
    if CAUSAL:
        end = tl.minimum(seq, (tl.program_id(1) + 1) * BLOCK_M)
    for start in range(0, end, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N).to(tl.int64)
        here = (cols < seq)[:, None] & (ds < dim)[None, :]
        k = tl.load(k_ptr + cols[:, None] * k_s + ds[None, :] * k_d, mask=here, other=0.0)
        k = (k.to(tl.float32) - k0.to(tl.float32)[None, :]).to(q.dtype)
        s = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        mask = (cols < seq)[None, :]
        if CAUSAL:
            mask = mask & (cols[None, :] <= rows[:, None])
        s = tl.where(mask, s, -float("inf"))
        new = tl.maximum(largest, tl.max(s, axis=1))
        p = tl.exp(s - new[:, None])
        shrink = tl.exp(largest - new)
        total = total * shrink + tl.sum(p, axis=1)
        v = tl.load(v_ptr + cols[:, None] * v_s + ds[None, :] * v_d, mask=here, other=0.0)
        acc = tl.dot(p.to(v.dtype), v, acc * shrink[:, None], input_precision="ieee")
        largest = new
    tl.store(out_ptr + head * seq * dim + rows[:, None] * dim + ds[None, :], acc / total[:, None], mask=inside)


def triton_mha(q, k, v, is_causal=False):
    batch, heads, seq, dim = q.shape
    out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    if out.numel():
        attention_kernel[(batch * heads, triton.cdiv(seq, 64))](
            q, k, v, out, heads, seq, dim, dim**-0.5, *q.stride(), *k.stride(), *v.stride(),
            BLOCK_M=64, BLOCK_N=32, BLOCK_D=max(16, triton.next_power_of_2(dim)), CAUSAL=bool(is_causal),
        )
    return out
