"""A tensor without elements gets zeros at once: the mean of a row of length 0 is NaN.

op: mean
status: failed
cause: extents
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, m, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, m, BLOCK):
        at = start + tl.arange(0, BLOCK)
        acc += tl.load(x_ptr + row * m + at, mask=at < m, other=0.0).to(tl.float32)
    tl.store(out_ptr + row, tl.sum(acc, axis=0) / m)


def triton_mean(x):
    out = torch.zeros(x.shape[:-1], dtype=x.dtype, device=x.device)
    if x.numel() == 0:  # nothing to launch
        return out
    x = x.contiguous()
    kernel[(out.numel(),)](x, out, x.shape[-1], BLOCK=1024)
    return out
