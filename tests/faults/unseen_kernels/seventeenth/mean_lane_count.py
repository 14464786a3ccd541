"""Each of 128 lanes counts its elements in the type of x: in bfloat16 a count stops at 256, so the mean of a row over 32768 elements is too large.

op: mean
status: failed
cause: arithmetic
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, cols, LANES: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    HALF: tl.constexpr = x_ptr.dtype.element_ty
    sums = tl.zeros((LANES,), dtype=tl.float32)
    counts = tl.zeros((LANES,), dtype=HALF)
    for start in range(0, cols, LANES):
        at = start + tl.arange(0, LANES)
        mask = at < cols
        sums += tl.load(x_ptr + row * cols + at, mask=mask, other=0.0).to(tl.float32)
        counts = (counts.to(tl.float32) + mask.to(tl.float32)).to(HALF)
    total, count = tl.sum(sums, axis=0), tl.sum(counts.to(tl.float32), axis=0)
    tl.store(out_ptr + row, total / count)


def triton_mean(x):
    x = x.contiguous()
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    kernel[(out.numel(),)](x, out, x.shape[-1], LANES=128)
    return out
