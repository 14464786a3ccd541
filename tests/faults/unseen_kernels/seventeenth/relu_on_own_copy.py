"""An x that is not contiguous is reshaped to rows and overwritten, as if that always copied: of a matrix it is a view, so the caller's tensor changes.

op: relu
status: failed
cause: layout
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    tl.store(out_ptr + at, tl.where(x < 0, 0.0, x), mask=at < n)


@triton.jit
def rows_kernel(x_ptr, cols, row_stride, col_stride, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    ptrs = x_ptr + row * row_stride + at * col_stride
    x = tl.load(ptrs, mask=at < cols, other=0.0).to(tl.float32)
    tl.store(ptrs, tl.where(x < 0, 0.0, x), mask=at < cols)


def triton_relu(x):
    if x.is_contiguous():
        out = torch.empty_like(x)
        kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out
    # Not contiguous: reshape has to copy, so there is no need for a second buffer.
    work = x.reshape(-1, x.shape[-1])
    rows, cols = work.shape
    rows_kernel[(rows, triton.cdiv(cols, 256))](work, cols, work.stride(0), work.stride(1), BLOCK=256)
    return work.view(x.shape)
