"""float8 is turned into float16 by moving its bits and adding 8 to the exponent, zero apart: subnormal float8 numbers
(below 2**-6) get a leading bit that they do not have.

op: fp8_matmul
status: failed
cause: subnormals
"""

import torch
import triton
import triton.language as tl

@triton.jit
def _wide(x):
    bits = x.to(tl.int16)
    body = (bits & 0x7F) << 7
    body = tl.where(body == 0, body, body + (8 << 10))
    return (body | ((bits & 0x80) << 8)).to(tl.float16, bitcast=True)


@triton.jit
def _k(a, b, sa, sb, out, m, n, k, am, ak, bn, bk, sas, sbs, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK, BLOCK), tl.float32)
    for start in range(0, k, BLOCK):
        ks = start + tl.arange(0, BLOCK)
        x = tl.load(a + rows.to(tl.int64)[:, None] * am + ks.to(tl.int64)[None, :] * ak, mask=(rows < m)[:, None] & (ks < k)[None, :], other=0)
        y = tl.load(b + cols.to(tl.int64)[None, :] * bn + ks.to(tl.int64)[:, None] * bk, mask=(cols < n)[None, :] & (ks < k)[:, None], other=0)
        acc = tl.dot(_wide(x), _wide(y), acc)
    s = tl.load(sa + rows * sas, mask=rows < m, other=0.0).to(tl.float32)
    t = tl.load(sb + cols * sbs, mask=cols < n, other=0.0).to(tl.float32)
    acc = acc * s[:, None] * t[None, :]
    at = rows.to(tl.int64)[:, None] * n + cols[None, :]
    tl.store(out + at, acc.to(out.dtype.element_ty), mask=(rows < m)[:, None] & (cols < n)[None, :])


def triton_fp8_matmul(a, b, scale_a, scale_b):
    (m, k), n = a.shape, b.shape[0]
    out = torch.empty((m, n), dtype=scale_a.dtype, device=a.device)
    if out.numel():
        a, b = a.view(torch.uint8), b.view(torch.uint8)
        _k[(triton.cdiv(m, 32), triton.cdiv(n, 32))](a, b, scale_a, scale_b, out, m, n, k, *a.stride(), *b.stride(), *scale_a.stride(), *scale_b.stride(), BLOCK=32)
    return out
