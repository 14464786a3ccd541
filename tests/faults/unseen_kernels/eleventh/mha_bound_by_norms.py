"""Subtracts the bound |q| * max |k| in place of a running maximum: exp is zero for every key where the bound is far above the scores.

op: mha
status: failed
cause: values
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    q_ptr, k_ptr, v_ptr, reach_ptr, out_ptr, seq, dim, scale,
    CAUSAL: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
):
    pair = tl.program_id(0).to(tl.int64)
    base = pair * seq * dim
    rows = tl.program_id(1) * BM + tl.arange(0, BM)
    ds = tl.arange(0, BD)
    q_mask = (rows < seq)[:, None] & (ds < dim)[None, :]
    q = tl.load(q_ptr + base + rows[:, None] * dim + ds[None, :], mask=q_mask, other=0.0).to(tl.float32)
    bound = tl.sqrt(tl.sum(q * q, axis=1)) * tl.load(reach_ptr + pair) * scale
    total = tl.zeros((BM,), dtype=tl.float32)
    acc = tl.zeros((BM, BD), dtype=tl.float32)
    for start in range(0, seq, BN):
        cols = start + tl.arange(0, BN)
        mask = (cols < seq)[:, None] & (ds < dim)[None, :]
        at = base + cols[:, None] * dim + ds[None, :]
        k = tl.load(k_ptr + at, mask=mask, other=0.0).to(tl.float32)
        v = tl.load(v_ptr + at, mask=mask, other=0.0).to(tl.float32)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        visible = (cols < seq)[None, :]
        if CAUSAL:
            visible = visible & (cols[None, :] <= rows[:, None])
        p = tl.where(visible, tl.exp(scores - bound[:, None]), 0.0)
        total += tl.sum(p, axis=1)
        acc += tl.dot(p, v, input_precision="ieee")
    tl.store(out_ptr + base + rows[:, None] * dim + ds[None, :], acc / total[:, None], mask=q_mask)


@triton.jit
def reach_kernel(k_ptr, reach_ptr, seq, dim, BN: tl.constexpr, BD: tl.constexpr):
    pair = tl.program_id(0).to(tl.int64)
    ds = tl.arange(0, BD)
    reach = 0.0
    for start in range(0, seq, BN):
        cols = start + tl.arange(0, BN)
        k = tl.load(k_ptr + pair * seq * dim + cols[:, None] * dim + ds[None, :],
                    mask=(cols < seq)[:, None] & (ds < dim)[None, :], other=0.0).to(tl.float32)
        reach = tl.maximum(reach, tl.max(tl.sqrt(tl.sum(k * k, axis=1)), axis=0))
    tl.store(reach_ptr + pair, reach)


def triton_mha(q, k, v, is_causal=False):
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    batch, heads, seq, dim = q.shape
    out = torch.empty_like(q)
    reach = torch.empty(batch * heads, device=q.device)
    BD = max(16, triton.next_power_of_2(dim))
    reach_kernel[(batch * heads,)](k, reach, seq, dim, BN=32, BD=BD)
    kernel[(batch * heads, triton.cdiv(seq, 32))](
        q, k, v, reach, out, seq, dim, dim**-0.5, CAUSAL=is_causal, BM=32, BN=32, BD=BD
    )
    return out
