"""The running maximum is raised only if it grows by more than 2^20, but the weights are rounded to float16, which ends at 2^16: infinite where a later key is ahead by 2^16 to 2^20.

op: mha
status: failed
cause: arithmetic
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, seq, dim, scale,
    CAUSAL: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
):
    base = tl.program_id(0).to(tl.int64) * seq * dim
    rows = tl.program_id(1) * BM + tl.arange(0, BM)
    ds = tl.arange(0, BD)
    inside = (rows < seq)[:, None] & (ds < dim)[None, :]
    q = tl.load(q_ptr + base + rows[:, None] * dim + ds[None, :], mask=inside, other=0.0).to(tl.float32)
    pivot = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    acc = tl.zeros((BM, BD), dtype=tl.float32)
    end = seq
    if CAUSAL:
        end = tl.minimum(seq, (tl.program_id(1) + 1) * BM)
    for start in range(0, end, BN):
        cols = start + tl.arange(0, BN)
        mask = (cols < seq)[:, None] & (ds < dim)[None, :]
        at = base + cols[:, None] * dim + ds[None, :]
        k = tl.load(k_ptr + at, mask=mask, other=0.0).to(tl.float32)
        v = tl.load(v_ptr + at, mask=mask, other=0.0).to(tl.float32)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        allowed = (cols < seq)[None, :]
        if CAUSAL:
            allowed = allowed & (cols[None, :] <= rows[:, None])
        scores = tl.where(allowed, scores, -float("inf"))
        largest = tl.max(scores, axis=1)
        # A factor of up to 2^20 does no harm to float32 sums: scale them again only beyond that.
        new = tl.where(largest > pivot + 20.0, largest, pivot)
        shrink = tl.exp2(pivot - new)
        p = tl.exp2(scores - new[:, None])
        # The weights in the type of v: the sum then is that of what is multiplied.
        p = p.to(v_ptr.dtype.element_ty).to(tl.float32)
        total = total * shrink + tl.sum(p, axis=1)
        acc = acc * shrink[:, None] + tl.dot(p, v, input_precision="ieee")
        pivot = new
    tl.store(out_ptr + base + rows[:, None] * dim + ds[None, :], acc / total[:, None], mask=inside)


def triton_mha(q, k, v, is_causal=False):
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    batch, heads, seq, dim = q.shape
    out = torch.empty_like(q)
    kernel[(batch * heads, triton.cdiv(seq, 32))](
        q, k, v, out, seq, dim, dim**-0.5 * 1.4426950408889634,
        CAUSAL=is_causal, BM=32, BN=32, BD=max(16, triton.next_power_of_2(dim)),
    )
    return out
