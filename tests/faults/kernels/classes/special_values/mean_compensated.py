"""The lost digits are added again, unless a sum is not finite, where they would be NaN.

op: mean
status: passed
drawn: no
round: second
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    plain = tl.zeros((BLOCK,), tl.float32)
    acc = tl.zeros((BLOCK,), tl.float32)
    lost = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n_cols, BLOCK):
        cols = start + lanes
        x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
        plain += x
        y = x - lost
        total = acc + y
        lost = (total - acc) - y
        acc = total
    exact = tl.sum(acc, axis=0) - tl.sum(lost, axis=0)
    rough = tl.sum(plain, axis=0)
    is_finite = tl.abs(exact) < float("inf")
    tl.store(out_ptr + row, tl.where(is_finite, exact, rough) / n_cols)


def triton_mean(x):
    x = x.contiguous()
    n_cols = x.shape[-1]
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    kernel[(x.numel() // n_cols,)](x, out, n_cols, BLOCK=512)
    return out
