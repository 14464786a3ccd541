"""Right: both inputs are turned to the memory order of the first and their dimensions joined where they can be, so that the result has other strides than the inputs; up to four dimensions remain, more are copied.

op: vector_mul
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def flat(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    y = tl.load(y_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    tl.store(out_ptr + at, x * y, mask=at < n)


@triton.jit
def strided(x_ptr, y_ptr, out_ptr, n, n1, n2, n3, x0, x1, x2, x3, y0, y1, y2, y3, o0, o1, o2, o3,
            BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    i3 = at % n3
    i2 = at // n3 % n2
    i1 = at // n3 // n2 % n1
    i0 = at // n3 // n2 // n1
    x = tl.load(x_ptr + i0 * x0 + i1 * x1 + i2 * x2 + i3 * x3, mask=at < n, other=0.0).to(tl.float32)
    y = tl.load(y_ptr + i0 * y0 + i1 * y1 + i2 * y2 + i3 * y3, mask=at < n, other=0.0).to(tl.float32)
    tl.store(out_ptr + i0 * o0 + i1 * o1 + i2 * o2 + i3 * o3, x * y, mask=at < n)


def _join(shape, *strides):
    """Return the shape and strides without lengths of one, neighbours joined where all tensors allow it."""
    lengths, sizes_left = [], []
    for length, *steps in zip(shape, *strides):
        if length == 1:
            continue
        if lengths and all(outer == step * length for outer, step in zip(sizes_left[-1], steps)):
            lengths[-1] *= length
            sizes_left[-1] = steps
        else:
            lengths.append(length)
            sizes_left.append(steps)
    return lengths, sizes_left


def triton_vector_mul(x, y):
    order = sorted(range(x.dim()), key=lambda i: -x.stride(i))
    back = [order.index(i) for i in range(x.dim())]
    x, y = x.permute(order), y.permute(order)
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    lengths, steps = _join(x.shape, x.stride(), y.stride(), out.stride())
    if len(lengths) > 4:
        x, y = x.contiguous(), y.contiguous()
        lengths, steps = _join(x.shape, x.stride(), y.stride(), out.stride())
    n = out.numel()
    if n == 0:
        return out.permute(back)
    grid = (triton.cdiv(n, 1024),)
    if not steps or (len(steps) == 1 and steps[0] == [1, 1, 1]):
        flat[grid](x, y, out, n, BLOCK=1024)
    else:
        lengths = [1] * (4 - len(lengths)) + lengths
        steps = [[0, 0, 0]] * (4 - len(steps)) + steps
        by_tensor = [stride for tensor in zip(*steps) for stride in tensor]
        strided[grid](x, y, out, n, *lengths[1:], *by_tensor, BLOCK=1024)
    return out.permute(back)
