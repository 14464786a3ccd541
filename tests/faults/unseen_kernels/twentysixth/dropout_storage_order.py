"""Dense inputs are walked in the order of the storage, so the mask of a seed depends on the layout of x.

op: dropout
status: failed
cause: layout
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, p, scale, seed, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    keep = tl.rand(seed, offsets) >= p
    y = tl.where(keep, x * scale, 0.0)
    tl.store(out_ptr + offsets, y.to(out_ptr.dtype.element_ty), mask=mask)


def triton_dropout(x, p=0.5, seed=0):
    out = torch.empty_like(x)
    if out.stride() != x.stride():  # empty_like keeps the strides of dense tensors only
        x = x.contiguous()
        out = torch.empty_like(x)
    # Elementwise: transposed and channels-last tensors need no copy.
    n = x.numel()
    kernel[(triton.cdiv(n, 1024),)](x, out, n, float(p), 1.0 / (1.0 - p), seed, BLOCK=1024)
    return out
