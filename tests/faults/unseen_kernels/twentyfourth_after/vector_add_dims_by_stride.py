"""Right: walks in the order of x's memory, merges dimensions of x, y and the result, and returns a permuted result as torch does.

op: vector_add
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    x_ptr, y_ptr, out_ptr, n, n1, n2, alpha,
    x0, x1, x2, y0, y1, y2, BLOCK: tl.constexpr,
):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inner = i % n2
    middle = i // n2 % n1
    outer = i // n2 // n1
    x = tl.load(x_ptr + outer * x0 + middle * x1 + inner * x2, mask=i < n, other=0.0)
    y = tl.load(y_ptr + outer * y0 + middle * y1 + inner * y2, mask=i < n, other=0.0)
    tl.store(out_ptr + i, x.to(tl.float32) + alpha * y.to(tl.float32), mask=i < n)


def merge_dims(shape, *strides):
    """Return the fewest (size, strides) that reach the same elements in the same order."""
    dims = []
    for size, *steps in zip(shape, *strides):
        if size == 1:
            continue
        if dims and all(last == size * step for last, step in zip(dims[-1][1], steps)):
            dims[-1] = (dims[-1][0] * size, steps)
        else:
            dims.append((size, steps))
    return dims


def triton_vector_add(x, y, alpha=1.0):
    if x.numel() == 0:
        return torch.empty_like(x)
    order = sorted(range(x.dim()), key=lambda d: (x.stride(d), -d), reverse=True)
    px, py = x.permute(order), y.permute(order)
    result = torch.empty(px.shape, dtype=x.dtype, device=x.device)  # dense, in this order
    dims = merge_dims(px.shape, px.stride(), py.stride())
    if len(dims) > 3:
        px, py = px.contiguous(), py.contiguous()
        dims = merge_dims(px.shape, px.stride(), py.stride())
    dims = [(1, [0, 0])] * (3 - len(dims)) + dims
    (_, s0), (n1, s1), (n2, s2) = dims
    n = x.numel()
    kernel[(triton.cdiv(n, 1024),)](
        px, py, result, n, n1, n2, float(alpha),
        s0[0], s1[0], s2[0], s0[1], s1[1], s2[1], BLOCK=1024,
    )  # fmt: skip
    back = [order.index(d) for d in range(x.dim())]
    return result.permute(back)
