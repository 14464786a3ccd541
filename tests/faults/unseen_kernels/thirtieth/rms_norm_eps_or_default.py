"""eps = 0 is taken as "not given" and becomes 1e-5: rows of small values come out too small.

op: rms_norm
status: failed
cause: parameter
"""

import torch
import triton
import triton.language as tl

EPS = 1e-5


@triton.jit
def kernel(x_ptr, w_ptr, out_ptr, n, m, eps, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    inside = rows < n
    total = tl.zeros((ROWS, BLOCK), dtype=tl.float32)
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = inside[:, None] & (cols < m)[None, :]
        x = tl.load(x_ptr + rows[:, None] * m + cols[None, :], mask=mask, other=0.0).to(tl.float32)
        total += x * x
    # A row past the end has 1 in place of its mean, as eps may be small.
    mean = tl.where(inside, tl.sum(total, axis=1) / m, 1.0)
    scale = (1.0 / tl.sqrt(mean + eps))[:, None]
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = inside[:, None] & (cols < m)[None, :]
        at = rows[:, None] * m + cols[None, :]
        w = tl.load(w_ptr + cols, mask=cols < m, other=0.0).to(tl.float32)[None, :]
        x = tl.load(x_ptr + at, mask=mask, other=0.0).to(tl.float32)
        tl.store(out_ptr + at, x * scale * w, mask=mask)


def triton_rms_norm(x, weight, eps=EPS):
    eps = eps or EPS  # a config without an eps passes None
    x = x.contiguous()
    out = torch.empty_like(x)
    if x.numel():
        m = x.shape[-1]
        n = x.numel() // m
        BLOCK = min(1024, triton.next_power_of_2(m))
        ROWS = max(1, 1024 // BLOCK)
        kernel[(triton.cdiv(n, ROWS),)](
            x, weight.contiguous(), out, n, m, eps, ROWS=ROWS, BLOCK=BLOCK
        )
    return out
