"""Scores are shifted by a bound, the norm of q times the largest norm of a key, instead of a running maximum: where q and k are a few
times larger than usual the bound is so far above every score that all exponentials are zero.

op: mha
status: failed
cause: underflow
"""

import torch
import triton
import triton.language as tl


@triton.jit
def norm_kernel(k_ptr, norm_ptr, seq, head_dim, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr):
    """Return the largest norm of a key, for each batch and head."""
    pair = tl.program_id(0).to(tl.int64)
    dims = tl.arange(0, BLOCK_D)
    largest = tl.zeros((BLOCK_N,), tl.float32)
    for start in range(0, seq, BLOCK_N):
        keys = start + tl.arange(0, BLOCK_N)
        mask = (keys < seq)[:, None] & (dims < head_dim)[None, :]
        k = tl.load(k_ptr + (pair * seq + keys[:, None]) * head_dim + dims[None, :], mask=mask, other=0.0)
        k = k.to(tl.float32)
        largest = tl.maximum(largest, tl.sum(k * k, axis=1))
    tl.store(norm_ptr + pair, tl.sqrt(tl.max(largest, axis=0)))


@triton.jit
def kernel(
    q_ptr, k_ptr, v_ptr, norm_ptr, out_ptr, seq, head_dim, scale,
    CAUSAL: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):
    pair = tl.program_id(0).to(tl.int64)
    rows = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)
    dims = tl.arange(0, BLOCK_D)
    row_mask = (rows < seq)[:, None] & (dims < head_dim)[None, :]
    row_places = (pair * seq + rows[:, None]) * head_dim + dims[None, :]
    q = tl.load(q_ptr + row_places, mask=row_mask, other=0.0).to(tl.float32)
    # |q . k| <= |q| |k|: no exponent is positive, and nothing has to be rescaled in the loop.
    bound = tl.sqrt(tl.sum(q * q, axis=1)) * tl.load(norm_ptr + pair) * scale
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
    end = seq
    if CAUSAL:
        end = tl.minimum(seq, (tl.program_id(1) + 1) * BLOCK_M)
    for start in range(0, end, BLOCK_N):
        keys = start + tl.arange(0, BLOCK_N)
        mask = (keys < seq)[:, None] & (dims < head_dim)[None, :]
        places = (pair * seq + keys[:, None]) * head_dim + dims[None, :]
        k = tl.load(k_ptr + places, mask=mask, other=0.0).to(tl.float32)
        v = tl.load(v_ptr + places, mask=mask, other=0.0).to(tl.float32)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        mask = (keys < seq)[None, :]
        if CAUSAL:
            mask = mask & (keys[None, :] <= rows[:, None])
        p = tl.where(mask, tl.exp(scores - bound[:, None]), 0.0)
        total += tl.sum(p, axis=1)
        acc = tl.dot(p, v, acc, input_precision="ieee")
    tl.store(out_ptr + row_places, acc / total[:, None], mask=row_mask)


def triton_mha(q, k, v, is_causal=False):
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    batch, heads, seq, head_dim = q.shape
    out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    if out.numel():
        BLOCK_D = max(16, triton.next_power_of_2(head_dim))
        norms = torch.empty(batch * heads, dtype=torch.float32, device=q.device)
        norm_kernel[(batch * heads,)](k, norms, seq, head_dim, BLOCK_N=32, BLOCK_D=BLOCK_D)
        kernel[(batch * heads, triton.cdiv(seq, 32))](
            q, k, v, norms, out, seq, head_dim, head_dim**-0.5,
            CAUSAL=is_causal, BLOCK_M=32, BLOCK_N=32, BLOCK_D=BLOCK_D,
        )
    return out
