"""Float16 values are added in pairs before they become float32: two values whose sum exceeds 65504 make the mean infinite.

op: mean
status: failed
cause: arithmetic
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, m, PAIRS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * m
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    if PAIRS:
        # Two halves in one instruction; one rounding to 11 bits for each pair is harmless.
        for start in range(0, m, 2 * BLOCK):
            cols = start + 2 * tl.arange(0, BLOCK)
            even = tl.load(x_ptr + cols, mask=cols < m, other=0.0)
            odd = tl.load(x_ptr + cols + 1, mask=cols + 1 < m, other=0.0)
            acc += (even + odd).to(tl.float32)
    else:
        for start in range(0, m, BLOCK):
            cols = start + tl.arange(0, BLOCK)
            acc += tl.load(x_ptr + cols, mask=cols < m, other=0.0).to(tl.float32)
    tl.store(out_ptr + row, tl.sum(acc, axis=0) / m)


def triton_mean(x):
    x = x.contiguous()
    m = x.shape[-1]
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    kernel[(x.numel() // m,)](x, out, m, PAIRS=x.dtype == torch.float16, BLOCK=512)
    return out
