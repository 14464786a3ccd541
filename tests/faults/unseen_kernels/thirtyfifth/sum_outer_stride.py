"""Padded inputs are not copied: rows are found by one stride, x.stride(-2), which does not reach the next
slab of a 3-D slice such as x[:, :3] or of a transposed batch.

op: sum
status: failed
cause: strides
"""

import torch
import triton
import triton.language as tl

@triton.jit
def _k(x, out, m, row_stride, col_stride, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    acc = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        v = tl.load(x + row * row_stride + cols.to(tl.int64) * col_stride, mask=cols < m, other=0.0)
        acc += v.to(tl.float32)
    tl.store(out + row, tl.sum(acc, 0).to(out.dtype.element_ty))


def triton_sum(x):
    if x.dim() >= 2 and x.stride(-1) != 1 and x.dim() != 2:
        x = x.contiguous()
    m = x.shape[-1]
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    if m == 0:
        return out.zero_()
    if out.numel():
        stride = x.stride(-2) if x.dim() > 1 else 0
        _k[(out.numel(),)](x, out, m, stride, x.stride(-1), BLOCK=min(1024, triton.next_power_of_2(m)))
    return out
