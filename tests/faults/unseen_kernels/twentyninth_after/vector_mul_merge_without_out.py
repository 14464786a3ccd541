"""Dimensions are merged where the strides of x and y allow it, but those of the output are not looked at: wrong where both are expanded.

op: vector_mul
status: failed
cause: layout
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    x_ptr, y_ptr, out_ptr, n, n1, n2, n3,
    x0, x1, x2, x3, y0, y1, y2, y3, o0, o1, o2, o3, BLOCK: tl.constexpr,
):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    i3 = i % n3
    i = i // n3
    i2 = i % n2
    i = i // n2
    i1 = i % n1
    i0 = i // n1
    x = tl.load(x_ptr + i0 * x0 + i1 * x1 + i2 * x2 + i3 * x3, mask=mask)
    y = tl.load(y_ptr + i0 * y0 + i1 * y1 + i2 * y2 + i3 * y3, mask=mask)
    tl.store(out_ptr + i0 * o0 + i1 * o1 + i2 * o2 + i3 * o3, x * y, mask=mask)


def merge_dims(x, y, out):
    """Lengths and strides of as few dimensions as possible, in the order of memory."""
    dims = [d for d in range(x.dim()) if x.shape[d] > 1]
    dims.sort(key=lambda d: -x.stride(d))
    groups = []
    for d in dims:
        size, strides = x.shape[d], (x.stride(d), y.stride(d), out.stride(d))
        if groups:
            length, outer = groups[-1]
            # empty_like keeps the order of x, so what merges in x merges in the output
            if outer[0] == size * strides[0] and outer[1] == size * strides[1]:
                groups[-1] = (length * size, strides)
                continue
        groups.append((size, strides))
    return groups


def triton_vector_mul(x, y):
    out = torch.empty_like(x)
    if not x.numel():
        return out
    groups = merge_dims(x, y, out)
    if len(groups) > 4:
        x, y, out = x.contiguous(), y.contiguous(), torch.empty(x.shape, dtype=x.dtype, device=x.device)
        groups = merge_dims(x, y, out)
    groups = [(1, (0, 0, 0))] * (4 - len(groups)) + groups
    sizes = [size for size, _ in groups]
    strides = [strides[i] for i in range(3) for _, strides in groups]
    kernel[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), *sizes[1:], *strides, BLOCK=1024)
    return out
