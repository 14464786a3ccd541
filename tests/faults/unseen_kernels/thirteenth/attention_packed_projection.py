"""If k lies behind q in one storage, all three are taken for parts of one projection and v for the part behind k: wrong where something else is in between.

op: attention
status: failed
cause: layout
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, heads, seq, dim, scale, stride_b, stride_h, stride_s,
    BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
):
    head = tl.program_id(0)
    base = (head // heads).to(tl.int64) * stride_b + (head % heads).to(tl.int64) * stride_h
    rows = tl.program_id(1) * BM + tl.arange(0, BM)
    ds = tl.arange(0, BD)
    inside = (rows < seq)[:, None] & (ds < dim)[None, :]
    at = base + rows[:, None] * stride_s + ds[None, :]
    q = tl.load(q_ptr + at, mask=inside, other=0.0).to(tl.float32)
    largest = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    acc = tl.zeros((BM, BD), dtype=tl.float32)
    for start in range(0, seq, BN):
        cols = start + tl.arange(0, BN)
        mask = (cols < seq)[:, None] & (ds < dim)[None, :]
        at = base + cols[:, None] * stride_s + ds[None, :]
        k = tl.load(k_ptr + at, mask=mask, other=0.0).to(tl.float32)
        v = tl.load(v_ptr + at, mask=mask, other=0.0).to(tl.float32)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        scores = tl.where((cols < seq)[None, :], scores, -float("inf"))
        new = tl.maximum(largest, tl.max(scores, axis=1))
        p = tl.exp(scores - new[:, None])
        shrink = tl.exp(largest - new)
        total = total * shrink + tl.sum(p, axis=1)
        acc = acc * shrink[:, None] + tl.dot(p, v, input_precision="ieee")
        largest = new
    at = head.to(tl.int64) * seq * dim + rows[:, None] * dim + ds[None, :]
    tl.store(out_ptr + at, acc / total[:, None], mask=inside)


def packed_step(q, k, v):
    """Return the distance of q and k in elements if both are parts of one projection, else 0."""
    if q.stride() != k.stride() or q.stride(-1) != 1:
        return 0
    storages = {t.untyped_storage().data_ptr() for t in (q, k, v)}
    step = k.storage_offset() - q.storage_offset()
    # The parts of [batch, seq, 3 * heads * dim] are at most a third of a position apart.
    if len(storages) == 1 and 0 < step and 3 * step <= q.stride(2):
        return step
    return 0


def triton_attention(q, k, v):
    batch, heads, seq, dim = q.shape
    step = packed_step(q, k, v)
    if step:
        # No copies: read the projection in place.
        v = torch.as_strided(k, k.shape, k.stride(), k.storage_offset() + step)
    else:
        q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    out = torch.empty((batch, heads, seq, dim), dtype=q.dtype, device=q.device)
    kernel[(batch * heads, triton.cdiv(seq, 32))](
        q, k, v, out, heads, seq, dim, dim**-0.5, q.stride(0), q.stride(1), q.stride(2),
        BM=32, BN=32, BD=max(16, triton.next_power_of_2(dim)),
    )
    return out
