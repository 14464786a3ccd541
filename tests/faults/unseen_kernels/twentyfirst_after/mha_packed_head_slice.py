"""The parts of one projection of queries, keys and values are taken to be heads times head_dim apart: wrong for some of its heads.

op: mha
status: failed
cause: layout
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, heads, seq, dim, batch_stride, head_stride, row_stride, part, scale,
    PACKED: tl.constexpr, CAUSAL: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
):
    pid = tl.program_id(0)
    base = (pid // heads).to(tl.int64) * batch_stride + (pid % heads).to(tl.int64) * head_stride
    rows = tl.program_id(1) * BM + tl.arange(0, BM)
    ds = tl.arange(0, BD)
    inside = (rows < seq)[:, None] & (ds < dim)[None, :]
    at = base + rows[:, None].to(tl.int64) * row_stride + ds[None, :]
    q = tl.load(q_ptr + at, mask=inside, other=0.0).to(tl.float32)
    largest = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    acc = tl.zeros((BM, BD), dtype=tl.float32)
    for start in range(0, seq, BN):
        cols = start + tl.arange(0, BN)
        mask = (cols < seq)[:, None] & (ds < dim)[None, :]
        at = base + cols[:, None].to(tl.int64) * row_stride + ds[None, :]
        if PACKED:  # one base address for all three
            k = tl.load(q_ptr + at + part, mask=mask, other=0.0).to(tl.float32)
            v = tl.load(q_ptr + at + 2 * part, mask=mask, other=0.0).to(tl.float32)
        else:
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
    at = pid.to(tl.int64) * seq * dim + rows[:, None] * dim + ds[None, :]
    tl.store(out_ptr + at, acc / total[:, None], mask=inside)


def from_one_projection(q, k, v):
    """Views of [batch, seq, 3, heads, dim] in this order."""
    same = q.untyped_storage().data_ptr() == k.untyped_storage().data_ptr() == v.untyped_storage().data_ptr()
    same = same and q.stride() == k.stride() == v.stride()
    ordered = q.storage_offset() < k.storage_offset() < v.storage_offset()
    return same and ordered and q.stride(3) == 1 and q.stride(1) == q.shape[3] and q.shape[2] > 1


def triton_mha(q, k, v, is_causal=False):
    packed = from_one_projection(q, k, v)
    if not packed:
        q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    batch, heads, seq, dim = q.shape
    out = torch.empty((batch, heads, seq, dim), dtype=q.dtype, device=q.device)
    strides = q.stride()[:3] if packed else (heads * seq * dim, seq * dim, dim)
    kernel[(batch * heads, triton.cdiv(seq, 32))](
        q, k, v, out, heads, seq, dim, *strides, heads * dim, dim**-0.5, PACKED=packed, CAUSAL=is_causal,
        BM=32, BN=32, BD=max(16, triton.next_power_of_2(dim)),
    )
    return out
