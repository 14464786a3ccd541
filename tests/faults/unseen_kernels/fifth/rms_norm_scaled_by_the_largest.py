"""Nothing wrong: a row is divided by its largest element before it is squared, if that is above one; the squares can't overflow.

op: rms_norm
status: passed
cause: none
"""

import torch
import triton
import triton.language as tl

@triton.jit
def kernel(x_ptr, w_ptr, out_ptr, n_rows, n_cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    while row < n_rows:
        lanes = tl.zeros((BLOCK,), dtype=tl.float32)
        for start in range(0, n_cols, BLOCK):
            cols = start + tl.arange(0, BLOCK)
            x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=0.0)
            lanes = tl.maximum(lanes, tl.abs(x.to(tl.float32)))
        factor = 1.0 / tl.maximum(tl.max(lanes, axis=0), 1.0)
        squares = tl.zeros((BLOCK,), dtype=tl.float32)
        for start in range(0, n_cols, BLOCK):
            cols = start + tl.arange(0, BLOCK)
            x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=0.0)
            x = x.to(tl.float32) * factor
            squares += x * x
        inverse = 1.0 / tl.sqrt(tl.sum(squares, axis=0) / n_cols + eps * factor * factor)
        for start in range(0, n_cols, BLOCK):
            cols = start + tl.arange(0, BLOCK)
            x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=0.0)
            w = tl.load(w_ptr + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
            y = x.to(tl.float32) * factor * inverse * w
            tl.store(out_ptr + row * n_cols + cols, y, mask=cols < n_cols)
        row += tl.num_programs(0)


def triton_rms_norm(x, weight, eps=1e-5):
    x, weight = x.contiguous(), weight.contiguous()
    out = torch.empty_like(x)
    n_cols = x.shape[-1]
    n_rows = x.numel() // n_cols
    block = min(1024, triton.next_power_of_2(n_cols))
    kernel[(min(n_rows, 48),)](x, weight, out, n_rows, n_cols, eps, BLOCK=block)
    return out
