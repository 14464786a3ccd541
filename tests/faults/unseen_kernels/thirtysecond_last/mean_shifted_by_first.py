"""The first element is subtracted before the sum, for accuracy with a large offset: where it is infinite, inf - inf gives NaN instead of inf.

op: mean
status: failed
cause: nonfinite
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, m, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    # Rows with a large common offset: only the deviations from the first value are added.
    origin = tl.load(x_ptr + row * m).to(tl.float32)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = cols < m
        x = tl.load(x_ptr + row * m + cols, mask=mask, other=0.0).to(tl.float32)
        total += tl.where(mask, x - origin, 0.0)
    mean = origin + tl.sum(total, axis=0) / m
    tl.store(out_ptr + row, mean.to(out_ptr.dtype.element_ty))


def triton_mean(x):
    x = x.contiguous()
    m = x.shape[-1]
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    if out.numel():
        kernel[(out.numel(),)](x, out, m, BLOCK=min(1024, triton.next_power_of_2(m)))
    return out
