"""The running maximum moves only when it grew by more than 20: in float16 a weight of exp(11.1) and above is infinite when it is converted for the second product.

op: attention
status: failed
cause: combination
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(q_ptr, k_ptr, v_ptr, out_ptr, seq, dim, scale, LAZY: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr):
    base = tl.program_id(0).to(tl.int64) * seq * dim
    rows = tl.program_id(1) * BM + tl.arange(0, BM)
    ds = tl.arange(0, BD)
    inside = (rows < seq)[:, None] & (ds < dim)[None, :]
    q = tl.load(q_ptr + base + rows[:, None] * dim + ds[None, :], mask=inside, other=0.0).to(tl.float32)
    largest = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    acc = tl.zeros((BM, BD), dtype=tl.float32)
    for start in range(0, seq, BN):
        cols = start + tl.arange(0, BN)
        mask = (cols < seq)[:, None] & (ds < dim)[None, :]
        at = base + cols[:, None] * dim + ds[None, :]
        k = tl.load(k_ptr + at, mask=mask, other=0.0).to(tl.float32)
        v = tl.load(v_ptr + at, mask=mask, other=0.0)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        scores = tl.where((cols < seq)[None, :], scores, -float("inf"))
        top = tl.max(scores, axis=1)
        # Most tiles leave the maximum as it is: any reference point does, since acc and total share it.
        new = tl.where(top - largest > LAZY, top, largest)
        shrink = tl.where(new == largest, 1.0, tl.exp(largest - new))
        p = tl.exp(scores - new[:, None])
        total = total * shrink + tl.sum(p, axis=1)
        # The weights in the dtype of v, as tensor cores take them; their product in float32.
        weights = p.to(v.dtype).to(tl.float32)
        acc = acc * shrink[:, None] + tl.dot(weights, v.to(tl.float32), input_precision="ieee")
        largest = new
    tl.store(out_ptr + base + rows[:, None] * dim + ds[None, :], acc / total[:, None], mask=inside)


def triton_attention(q, k, v):
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    batch, heads, seq, dim = q.shape
    out = torch.empty_like(q)
    kernel[(batch * heads, triton.cdiv(seq, 32))](
        q, k, v, out, seq, dim, dim**-0.5, LAZY=20.0, BM=32, BN=32, BD=max(16, triton.next_power_of_2(dim)),
    )
    return out
