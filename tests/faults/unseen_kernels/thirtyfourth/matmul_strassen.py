"""One level of Strassen (seven products) where m, n, k are even and at least 64: right by norm only. Wrong
for parts of the product that are much smaller than others, as with rows of a of unlike size.

op: matmul
status: failed
cause: cancellation
"""
import torch
import triton
import triton.language as tl

# quadrants (row, column) and sign of the second: of a, of b
PRODUCTS = (
    ((0, 0), (1, 1), 1, (0, 0), (1, 1), 1), ((1, 0), (1, 1), 1, (0, 0), (0, 0), 0),
    ((0, 0), (0, 0), 0, (0, 1), (1, 1), -1), ((1, 1), (1, 1), 0, (1, 0), (0, 0), -1),
    ((0, 0), (0, 1), 1, (1, 1), (1, 1), 0), ((1, 0), (0, 0), -1, (0, 0), (0, 1), 1),
    ((0, 1), (1, 1), -1, (1, 0), (1, 1), 1),
)


@triton.jit
def _product(a, b, c, m, n, k, am, ak, bk, bn, cm, cn, a2, b2, SA: tl.constexpr, SB: tl.constexpr,
             BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rm = tl.program_id(0).to(tl.int64) * BM + tl.arange(0, BM)
    rn = tl.program_id(1).to(tl.int64) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, k, BK):
        rk = start + tl.arange(0, BK).to(tl.int64)
        ma = (rm[:, None] < m) & (rk[None, :] < k)
        mb = (rk[:, None] < k) & (rn[None, :] < n)
        pa = a + rm[:, None] * am + rk[None, :] * ak
        pb = b + rk[:, None] * bk + rn[None, :] * bn
        x = tl.load(pa, mask=ma, other=0.0).to(tl.float32)
        y = tl.load(pb, mask=mb, other=0.0).to(tl.float32)
        if SA != 0:
            x += SA * tl.load(pa + a2, mask=ma, other=0.0).to(tl.float32)
        if SB != 0:
            y += SB * tl.load(pb + b2, mask=mb, other=0.0).to(tl.float32)
        acc += tl.dot(x, y, input_precision="ieee")
    mask = (rm[:, None] < m) & (rn[None, :] < n)
    tl.store(c + rm[:, None] * cm + rn[None, :] * cn, acc.to(c.dtype.element_ty), mask=mask)


@triton.jit
def _join(p, out, m, n, size, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = at < size
    m1 = tl.load(p + at, mask=mask)
    m2 = tl.load(p + size + at, mask=mask)
    m3 = tl.load(p + 2 * size + at, mask=mask)
    m4 = tl.load(p + 3 * size + at, mask=mask)
    m5 = tl.load(p + 4 * size + at, mask=mask)
    m6 = tl.load(p + 5 * size + at, mask=mask)
    m7 = tl.load(p + 6 * size + at, mask=mask)
    to = out + at // n * (2 * n) + at % n
    tl.store(to, (m1 + m4 - m5 + m7).to(out.dtype.element_ty), mask=mask)
    tl.store(to + n, (m3 + m5).to(out.dtype.element_ty), mask=mask)
    tl.store(to + 2 * m * n, (m2 + m4).to(out.dtype.element_ty), mask=mask)
    tl.store(to + 2 * m * n + n, (m1 - m2 + m3 + m6).to(out.dtype.element_ty), mask=mask)


def triton_matmul(a, b):
    (m, k), n = a.shape, b.shape[1]
    out = torch.empty((m, n), dtype=a.dtype, device=a.device)
    if out.numel() == 0:
        return out
    tiles = {"BM": 64, "BN": 64, "BK": 64}
    if min(m, n, k) < 64 or m % 2 or n % 2 or k % 2:
        grid = (triton.cdiv(m, 64), triton.cdiv(n, 64))
        _product[grid](a, b, out, m, n, k, *a.stride(), *b.stride(), n, 1, 0, 0, SA=0, SB=0, **tiles)
        return out
    m, n, k = m // 2, n // 2, k // 2
    parts = torch.empty((7, m, n), dtype=torch.float32, device=a.device)
    grid = (triton.cdiv(m, 64), triton.cdiv(n, 64))
    for part, (a1, a2, sa, b1, b2, sb) in zip(parts, PRODUCTS):
        left, right = a[a1[0] * m :, a1[1] * k :], b[b1[0] * k :, b1[1] * n :]
        to_a = (a2[0] - a1[0]) * m * a.stride(0) + (a2[1] - a1[1]) * k * a.stride(1)
        to_b = (b2[0] - b1[0]) * k * b.stride(0) + (b2[1] - b1[1]) * n * b.stride(1)
        _product[grid](left, right, part, m, n, k, *a.stride(), *b.stride(), n, 1, to_a, to_b, SA=sa, SB=sb, **tiles)
    _join[(triton.cdiv(m * n, 1024),)](parts, out, m, n, m * n, BLOCK=1024)
    return out
