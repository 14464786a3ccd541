"""Dimensions of size one are left out where rows are merged, but the row stride is read from such a dimension.

op: softmax
status: failed
cause: layouts
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, m, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * stride
    out_ptr += row * m
    largest = -float("inf")
    total = 0.0
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + cols, mask=cols < m, other=-float("inf")).to(tl.float32)
        new = tl.maximum(largest, tl.max(x, axis=0))
        base = tl.where(new == -float("inf"), 0.0, new)
        total = total * tl.exp(largest - base) + tl.sum(tl.exp(x - base), axis=0)
        largest = new
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + cols, mask=cols < m, other=-float("inf")).to(tl.float32)
        tl.store(out_ptr + cols, tl.exp(x - largest) / total, mask=cols < m)


def row_stride(x):
    """Return the distance between neighbouring rows, over all leading dimensions; None: there is none."""
    if x.stride(-1) != 1:
        return None
    if x.dim() < 2:
        return 0
    # The stride of a dimension of size one means nothing.
    dims = [(n, s) for n, s in zip(x.shape[:-1], x.stride()[:-1]) if n > 1]
    for (_, outer), (size, inner) in zip(dims, dims[1:]):
        if outer != size * inner:
            return None
    return x.stride(-2)


def triton_softmax(x):
    m = x.shape[-1]
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if out.numel() == 0:
        return out
    stride = row_stride(x)
    if stride is None:
        x, stride = x.contiguous(), m
    kernel[(x.numel() // m,)](x, out, m, stride, BLOCK=min(2048, triton.next_power_of_2(m)))
    return out
