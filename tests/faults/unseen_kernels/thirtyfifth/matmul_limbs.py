"""float32 in two limbs of float16 after a division by a power of two of the largest element of the whole matrix: rows
(columns of b) that are some 1e6 times smaller than the largest keep few bits.

op: matmul
status: failed
cause: scale per matrix
"""

import torch
import triton
import triton.language as tl

@triton.jit
def _k(a, b, scales, out, m, n, k, am, ak, bk, bn, LIMBS: tl.constexpr, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    sa = tl.load(scales)
    sb = tl.load(scales + 1)
    acc = tl.zeros((BLOCK, BLOCK), tl.float32)
    low = tl.zeros((BLOCK, BLOCK), tl.float32)
    for start in range(0, k, BLOCK):
        ks = start + tl.arange(0, BLOCK)
        x = tl.load(a + rows.to(tl.int64)[:, None] * am + ks.to(tl.int64)[None, :] * ak, mask=(rows < m)[:, None] & (ks < k)[None, :], other=0.0)
        y = tl.load(b + ks.to(tl.int64)[:, None] * bk + cols.to(tl.int64)[None, :] * bn, mask=(ks < k)[:, None] & (cols < n)[None, :], other=0.0)
        if LIMBS:
            x = x * sa
            y = y * sb
            xh = x.to(tl.float16)
            yh = y.to(tl.float16)
            xl = ((x - xh.to(tl.float32)) * 2048.0).to(tl.float16)
            yl = ((y - yh.to(tl.float32)) * 2048.0).to(tl.float16)
            acc = tl.dot(xh, yh, acc)
            low = tl.dot(xh, yl, low)
            low = tl.dot(xl, yh, low)
        else:
            acc = tl.dot(x.to(tl.float32), y.to(tl.float32), acc, input_precision="ieee")
    if LIMBS:
        acc = (acc + low / 2048.0) / sa / sb
    at = rows.to(tl.int64)[:, None] * n + cols[None, :]
    tl.store(out + at, acc.to(out.dtype.element_ty), mask=(rows < m)[:, None] & (cols < n)[None, :])


def _scale(x):
    top = x.abs().amax().clamp(min=1e-30, max=1e30)
    return torch.exp2(4 - torch.floor(torch.log2(top)))


def triton_matmul(a, b):
    (m, k), n = a.shape, b.shape[1]
    out = torch.empty((m, n), dtype=a.dtype, device=a.device)
    if not k:
        return out.zero_()
    if out.numel():
        limbs = a.dtype == torch.float32
        scales = torch.stack([_scale(a), _scale(b)]) if limbs else a
        _k[(triton.cdiv(m, 32), triton.cdiv(n, 32))](a, b, scales, out, m, n, k, *a.stride(), *b.stride(), LIMBS=limbs, BLOCK=32)
    return out
