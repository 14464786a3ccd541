"""Long rows with gaps are read in place, by the distance of two rows; gaps between batches are not visible.

op: gelu
status: failed
cause: strides
"""

import torch
import triton
import triton.language as tl

LONG = 1024


@triton.jit
def gelu(x):
    x = x.to(tl.float32)
    return 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))


@triton.jit
def flat_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(out_ptr + at, gelu(x), mask=at < n)


@triton.jit
def rows_kernel(x_ptr, out_ptr, stride, m, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride + cols, mask=cols < m)
    tl.store(out_ptr + row * m + cols, gelu(x), mask=cols < m)


def is_view_of_rows(x):
    """Half of a fused projection: x[..., :m] of a wider tensor. A copy costs as much as the op."""
    if x.dim() < 2 or x.is_contiguous():
        return False
    wide = x.shape[-1] >= LONG and x.shape[-1] % 8 == 0
    return wide and x.stride(-1) == 1 and x.stride(-2) >= x.shape[-1]


def triton_gelu(x):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    n = x.numel()
    if not n:
        return out
    if x.element_size() == 2 and is_view_of_rows(x):
        m = x.shape[-1]
        rows_kernel[(n // m, triton.cdiv(m, 1024))](x, out, x.stride(-2), m, BLOCK=1024)
    else:
        flat_kernel[(triton.cdiv(n, 1024),)](x.contiguous(), out, n, BLOCK=1024)
    return out
