"""Rows with an element over one are divided by the largest before they are squared.

op: rms_norm
status: passed
drawn: no
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, w_ptr, out_ptr, n_cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    largest = tl.full((), 1.0, dtype=tl.float32)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
        largest = tl.maximum(largest, tl.max(tl.abs(x), axis=0))
    total = tl.full((), 0.0, dtype=tl.float32)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
        x = x / largest
        total += tl.sum(x * x, axis=0)
    scale = tl.rsqrt(total / n_cols + eps / largest / largest)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = cols < n_cols
        x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
        w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
        tl.store(out_ptr + row * n_cols + cols, x / largest * scale * w, mask=mask)


def triton_rms_norm(x, weight, eps=1e-5):
    x, weight = x.contiguous(), weight.contiguous()
    out = torch.empty_like(x)
    n_cols = x.shape[-1]
    BLOCK = min(2048, triton.next_power_of_2(n_cols))
    kernel[(x.numel() // n_cols,)](x, weight, out, n_cols, eps, BLOCK=BLOCK)
    return out
