"""The maximum of a row's first piece serves for all of it; where the sum is not a finite number above zero, the row is done again with its own maximum.

op: softmax
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, m, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    base = x_ptr + row * m
    cols = tl.arange(0, BLOCK)
    shift = tl.max(tl.load(base + cols, mask=cols < m, other=-float("inf")).to(tl.float32), axis=0)
    sums = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, m, BLOCK):
        x = tl.load(base + start + cols, mask=start + cols < m, other=-float("inf")).to(tl.float32)
        sums += tl.exp(x - shift)
    total = tl.sum(sums, axis=0)
    if (total > 0.0) & (total < 1e38):
        pass
    else:
        tops = tl.full((BLOCK,), -float("inf"), dtype=tl.float32)
        for start in range(0, m, BLOCK):
            x = tl.load(base + start + cols, mask=start + cols < m, other=-float("inf")).to(tl.float32)
            tops = tl.maximum(tops, x)
        shift = tl.max(tops, axis=0)
        sums = tl.zeros((BLOCK,), dtype=tl.float32)
        for start in range(0, m, BLOCK):
            x = tl.load(base + start + cols, mask=start + cols < m, other=-float("inf")).to(tl.float32)
            sums += tl.exp(x - shift)
        total = tl.sum(sums, axis=0)
    for start in range(0, m, BLOCK):
        x = tl.load(base + start + cols, mask=start + cols < m, other=-float("inf")).to(tl.float32)
        tl.store(out_ptr + row * m + start + cols, tl.exp(x - shift) / total, mask=start + cols < m)


def triton_softmax(x):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if x.numel() == 0:
        return out
    x = x.contiguous()
    m = x.shape[-1]
    kernel[(x.numel() // m,)](x, out, m, BLOCK=min(512, triton.next_power_of_2(m)))
    return out
