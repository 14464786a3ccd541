"""Right: outputs much taller or wider than the other side are computed in one dimension of programs, in groups with a short last one.

op: fp8_matmul
status: passed
"""

import torch
import triton
import triton.language as tl

TILE = 64
GROUP = 8


@triton.jit
def kernel(a_ptr, b_ptr, sa_ptr, sb_ptr, out_ptr, m, n, k, am, ak, bn, bk, om, on,
           GROUPS: tl.constexpr, T: tl.constexpr, BK: tl.constexpr):  # fmt: skip
    i, j = tl.program_id(0), tl.program_id(1)
    if GROUPS > 0:
        tiles_m, tiles_n = tl.cdiv(m, T), tl.cdiv(n, T)
        # Backwards: the short group starts first, and ends with the others.
        pid = tiles_m * tiles_n - 1 - tl.program_id(0)
        group = pid // (GROUPS * tiles_n)
        height = tl.minimum(tiles_m - group * GROUPS, GROUPS)
        inside = pid - group * GROUPS * tiles_n
        i = group * GROUPS + inside % height
        j = inside // height
    rows = i * T + tl.arange(0, T)
    cols = j * T + tl.arange(0, T)
    total = tl.zeros((T, T), dtype=tl.float32)
    for start in range(0, k, BK):
        ks = start + tl.arange(0, BK)
        a = tl.load(a_ptr + rows.to(tl.int64)[:, None] * am + ks.to(tl.int64)[None, :] * ak,
                    mask=(rows < m)[:, None] & (ks < k)[None, :], other=0.0)  # fmt: skip
        b = tl.load(b_ptr + cols.to(tl.int64)[None, :] * bn + ks.to(tl.int64)[:, None] * bk,
                    mask=(cols < n)[None, :] & (ks < k)[:, None], other=0.0)  # fmt: skip
        total = tl.dot(a.to(tl.float16), b.to(tl.float16), total)
    sa = tl.load(sa_ptr + rows, mask=rows < m, other=0.0).to(tl.float32)
    sb = tl.load(sb_ptr + cols, mask=cols < n, other=0.0).to(tl.float32)
    out = total * sa[:, None] * sb[None, :]
    at = rows.to(tl.int64)[:, None] * om + cols.to(tl.int64)[None, :] * on
    tl.store(out_ptr + at, out, mask=(rows < m)[:, None] & (cols < n)[None, :])


def triton_fp8_matmul(a, b, scale_a, scale_b):
    scale_a, scale_b = scale_a.contiguous(), scale_b.contiguous()
    (m, k), n = a.shape, b.shape[0]
    out = torch.empty((m, n), dtype=scale_a.dtype, device=a.device)
    tiles_m, tiles_n = triton.cdiv(m, TILE), triton.cdiv(n, TILE)
    depth = 64 if k >= 64 else 32
    if tiles_n >= 4 * tiles_m and tiles_n > GROUP:
        # Wide: the transposed product is tall.
        kernel[(tiles_m * tiles_n,)](
            b, a, scale_b, scale_a, out, n, m, k, *b.stride(), *a.stride(), 1, n,
            GROUPS=GROUP, T=TILE, BK=depth,
        )  # fmt: skip
    else:
        is_tall = tiles_m > 3 * tiles_n and tiles_m % GROUP != 0 and tiles_m // GROUP > 0
        kernel[(tiles_m * tiles_n,) if is_tall else (tiles_m, tiles_n)](
            a, b, scale_a, scale_b, out, m, n, k, *a.stride(), *b.stride(), n, 1,
            GROUPS=GROUP if is_tall else 0, T=TILE, BK=depth,
        )  # fmt: skip
    return out
