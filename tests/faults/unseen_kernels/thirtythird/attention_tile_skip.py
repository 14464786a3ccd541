"""Skips a tile of keys whose scores are all 24 below the running maximum, but of the block, not of each query.
One query with a very large score in an early tile makes its 31 neighbours lose all later keys.

op: attention
status: failed
cause: tile skipped for all rows
"""
import torch
import triton
import triton.language as tl


@triton.jit
def _kernel(q, k, v, out, heads, n_q, n_k, dim, scale,
            qb, qh, qs, qd, kb, kh, ks, kd, vb, vh, vs, vd,
            BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr):
    head = tl.program_id(0).to(tl.int64)
    b, h = head // heads, head % heads
    i = (tl.program_id(1) * BM + tl.arange(0, BM)).to(tl.int64)
    d = tl.arange(0, BD).to(tl.int64)
    x = tl.load(q + b * qb + h * qh + i[:, None] * qs + d[None, :] * qd,
                mask=(i < n_q)[:, None] & (d < dim)[None, :], other=0.0).to(tl.float32) * scale
    top = tl.full((BM,), float("-inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, BD), tl.float32)
    for start in range(0, n_k, BN):
        j = (start + tl.arange(0, BN)).to(tl.int64)
        y = tl.load(k + b * kb + h * kh + j[None, :] * ks + d[:, None] * kd,
                    mask=(j < n_k)[None, :] & (d < dim)[:, None], other=0.0).to(tl.float32)
        s = tl.dot(x, y, input_precision="ieee")
        s = tl.where((j < n_k)[None, :], s, float("-inf"))
        if tl.max(s) > tl.max(top) - 24.0:  # else exp is below 4e-11: no need to load v
            new = tl.maximum(top, tl.max(s, 1))
            p = tl.exp(s - new[:, None])
            fix = tl.exp(top - new)
            z = tl.load(v + b * vb + h * vh + j[:, None] * vs + d[None, :] * vd,
                        mask=(j < n_k)[:, None] & (d < dim)[None, :], other=0.0).to(tl.float32)
            total = total * fix + tl.sum(p, 1)
            acc = tl.dot(p, z, acc * fix[:, None], input_precision="ieee")
            top = new
    to = out + head * n_q * dim + i[:, None] * dim + d[None, :]
    tl.store(to, (acc / total[:, None]).to(out.dtype.element_ty),
             mask=(i < n_q)[:, None] & (d < dim)[None, :])


def triton_attention(q, k, v):
    batch, heads, n_q, dim = q.shape
    out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    if q.numel():
        grid = batch * heads, triton.cdiv(n_q, 32)
        _kernel[grid](q, k, v, out, heads, n_q, k.shape[2], dim, dim**-0.5,
                      *q.stride(), *k.stride(), *v.stride(),
                      BM=32, BN=64, BD=max(16, triton.next_power_of_2(dim)))
    return out
