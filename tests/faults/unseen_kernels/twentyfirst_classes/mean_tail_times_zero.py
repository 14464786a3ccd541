"""The last tile of a row reads on into the next row and is multiplied by a mask of 0 and 1: a NaN or an infinity at the start of the next row spreads to this one.

op: mean
status: failed
cause: arithmetic
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, m, size, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    base = row.to(tl.int64) * m
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        # Only the tensor's end needs a mask for the load: what belongs to the next row counts 0 times.
        x = tl.load(x_ptr + base + cols, mask=base + cols < size, other=0.0).to(tl.float32)
        total += x * (cols < m).to(tl.float32)
    tl.store(out_ptr + row, tl.sum(total, axis=0) / m)


def triton_mean(x):
    x = x.contiguous()
    m = x.shape[-1]
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    kernel[(x.numel() // m,)](x, out, m, x.numel(), BLOCK=min(512, triton.next_power_of_2(m)))
    return out
