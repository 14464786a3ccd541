"""Right: merges dimensions by the strides of both inputs, reads expanded ones in place, and lays the output out in the order of x.

op: vector_add
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(
    x_ptr, y_ptr, out_ptr, n, alpha, n1, n2, n3,
    x0, x1, x2, x3, y0, y1, y2, y3, o0, o1, o2, o3, BLOCK: tl.constexpr,
):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    i3 = i % n3
    i2 = i // n3 % n2
    i1 = i // n3 // n2 % n1
    i0 = i // n3 // n2 // n1
    x = tl.load(x_ptr + (i0 * x0 + i1 * x1 + i2 * x2 + i3 * x3), mask=mask).to(tl.float32)
    y = tl.load(y_ptr + (i0 * y0 + i1 * y1 + i2 * y2 + i3 * y3), mask=mask).to(tl.float32)
    tl.store(out_ptr + (i0 * o0 + i1 * o1 + i2 * o2 + i3 * o3), x + alpha * y, mask=mask)


def merge_dims(sizes, tensors):
    """Return dimensions as [size, strides], neighbours joined where all tensors allow it."""
    dims = []
    for d, size in enumerate(sizes):
        if size == 1:
            continue
        strides = [t.stride(d) for t in tensors]
        if dims and all(a == b * size for a, b in zip(dims[-1][1], strides)):
            dims[-1] = [dims[-1][0] * size, strides]
        else:
            dims.append([size, strides])
    return dims


def triton_vector_add(x, y, alpha=1.0):
    order = sorted(range(x.dim()), key=lambda d: -x.stride(d))
    back = [order.index(d) for d in range(x.dim())]
    x, y = x.permute(order), y.permute(order)
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if out.numel():
        dims = merge_dims(x.shape, (x, y, out))
        if len(dims) > 4:
            x, y = x.contiguous(), y.contiguous()
            dims = merge_dims(x.shape, (x, y, out))
        dims = [[1, [0, 0, 0]]] * (4 - len(dims)) + dims
        sizes = [size for size, _ in dims]
        strides = [dims[d][1][t] for t in range(3) for d in range(4)]
        add_kernel[(triton.cdiv(out.numel(), 1024),)](
            x, y, out, out.numel(), float(alpha), *sizes[1:], *strides, BLOCK=1024
        )
    return out.permute(back)
