"""The accumulators are rescaled only when the maximum grows by more than 20 powers of two, but the weights go into the product as float16: those over 2^16 become infinite.

op: attention
status: failed
cause: combination
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, seq, dim, scale,
    COMPUTE: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
):
    base = tl.program_id(0).to(tl.int64) * seq * dim
    rows = tl.program_id(1) * BM + tl.arange(0, BM)
    ds = tl.arange(0, BD)
    inside = (rows < seq)[:, None] & (ds < dim)[None, :]
    q = tl.load(q_ptr + base + rows[:, None] * dim + ds[None, :], mask=inside, other=0.0).to(COMPUTE)
    reference = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    acc = tl.zeros((BM, BD), dtype=tl.float32)
    for start in range(0, seq, BN):
        cols = start + tl.arange(0, BN)
        mask = (cols < seq)[:, None] & (ds < dim)[None, :]
        at = base + cols[:, None] * dim + ds[None, :]
        k = tl.load(k_ptr + at, mask=mask, other=0.0).to(COMPUTE)
        v = tl.load(v_ptr + at, mask=mask, other=0.0).to(COMPUTE)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        scores = tl.where((cols < seq)[None, :], scores, -float("inf"))
        largest = tl.max(scores, axis=1)
        # The sums are float32: 2^20 does no harm, and most tiles need no rescaling.
        chosen = tl.where(largest - reference > 20.0, largest, reference)
        shrink = tl.exp2(reference - chosen)
        p = tl.exp2(scores - chosen[:, None])
        total = total * shrink + tl.sum(p, axis=1)
        acc = acc * shrink[:, None] + tl.dot(p.to(COMPUTE), v, input_precision="ieee")
        reference = chosen
    tl.store(out_ptr + base + rows[:, None] * dim + ds[None, :], acc / total[:, None], mask=inside)


def triton_attention(q, k, v):
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    batch, heads, seq, dim = q.shape
    out = torch.empty_like(q)
    compute = tl.float16 if q.dtype == torch.float16 else tl.float32
    kernel[(batch * heads, triton.cdiv(seq, 32))](
        q, k, v, out, seq, dim, 1.4426950408889634 * dim**-0.5, COMPUTE=compute,
        BM=32, BN=32, BD=max(16, triton.next_power_of_2(dim)),
    )
    return out
