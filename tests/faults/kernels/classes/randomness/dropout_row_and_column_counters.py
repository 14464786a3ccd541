"""The key is mixed from the seed and the row, the counter is the column.

op: dropout
status: passed
drawn: no
round: second
"""

import torch
import triton
import triton.language as tl


@triton.jit
def mixed(a):
    a = (a ^ (a >> 16)) * 0x7FEB352D
    a = (a ^ (a >> 15)) * 0x846CA68B
    return a ^ (a >> 16)


@triton.jit(do_not_specialize=["seed"])
def kernel(x_ptr, out_ptr, n_cols, seed, p, scale, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = cols < n_cols
    low, high, _, _ = tl.philox(
        seed,
        mixed(tl.zeros((BLOCK,), tl.uint32) + row.to(tl.uint32)),
        cols.to(tl.uint32),
        row.to(tl.uint32),
        0,
    )
    draw = tl.uint_to_uniform_float(low)
    x = tl.load(x_ptr + row.to(tl.int64) * n_cols + cols, mask=mask).to(tl.float32)
    out = tl.where(draw >= p, x * scale, 0.0)
    tl.store(out_ptr + row.to(tl.int64) * n_cols + cols, out, mask=mask)


def triton_dropout(x, p=0.5, seed=0):
    x = x.contiguous()
    out = torch.empty_like(x)
    n_cols = x.shape[-1]
    scale = 1.0 / (1.0 - p) if p < 1 else 0.0
    kernel[(x.numel() // n_cols, triton.cdiv(n_cols, 1024))](
        x, out, n_cols, seed, float(p), scale, BLOCK=1024
    )
    return out
