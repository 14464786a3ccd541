"""When q, k and v lie in one storage they are taken for a packed projection and all get q's strides: keys that are stored transposed in the same arena are read wrongly.

op: mha
status: failed
cause: layout
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, heads, seq, dim, sb, sh, ss, sd, scale,
    CAUSAL: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
):
    batch = tl.program_id(0) // heads
    head = tl.program_id(0) % heads
    base = batch.to(tl.int64) * sb + head.to(tl.int64) * sh
    rows = tl.program_id(1) * BM + tl.arange(0, BM)
    ds = tl.arange(0, BD)
    inside = (rows < seq)[:, None] & (ds < dim)[None, :]
    q = tl.load(q_ptr + base + rows[:, None] * ss + ds[None, :] * sd, mask=inside, other=0.0).to(tl.float32)
    largest = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    acc = tl.zeros((BM, BD), dtype=tl.float32)
    for start in range(0, seq, BN):
        cols = start + tl.arange(0, BN)
        mask = (cols < seq)[:, None] & (ds < dim)[None, :]
        at = base + cols[:, None] * ss + ds[None, :] * sd
        k = tl.load(k_ptr + at, mask=mask, other=0.0).to(tl.float32)
        v = tl.load(v_ptr + at, mask=mask, other=0.0).to(tl.float32)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        allowed = (cols < seq)[None, :]
        if CAUSAL:
            allowed = allowed & (cols[None, :] <= rows[:, None])
        scores = tl.where(allowed, scores, -float("inf"))
        new = tl.maximum(largest, tl.max(scores, axis=1))
        p = tl.exp(scores - new[:, None])
        shrink = tl.exp(largest - new)
        total = total * shrink + tl.sum(p, axis=1)
        acc = acc * shrink[:, None] + tl.dot(p, v, input_precision="ieee")
        largest = new
    out = out_ptr + tl.program_id(0).to(tl.int64) * seq * dim + rows[:, None] * dim + ds[None, :]
    tl.store(out, acc / total[:, None], mask=inside)


def triton_mha(q, k, v, is_causal=False):
    batch, heads, seq, dim = q.shape
    storages = {x.untyped_storage().data_ptr() for x in (q, k, v)}
    if len(storages) > 1:
        # Not the slices of one projection.
        q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    kernel[(batch * heads, triton.cdiv(seq, 32))](
        q, k, v, out, heads, seq, dim, *q.stride(), dim**-0.5, CAUSAL=is_causal,
        BM=32, BN=32, BD=max(16, triton.next_power_of_2(dim)),
    )
    return out
