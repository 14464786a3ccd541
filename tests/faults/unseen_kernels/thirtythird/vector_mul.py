"""No copies: the merged dimensions go to the kernel as six sizes and strides, and each element finds its place.

op: vector_mul
status: passed
"""
import torch
import triton
import triton.language as tl


@triton.jit
def _at(e, n1, n2, n3, n4, n5, s0, s1, s2, s3, s4, s5):
    place = e % n5 * s5
    e = e // n5
    place += e % n4 * s4
    e = e // n4
    place += e % n3 * s3
    e = e // n3
    place += e % n2 * s2
    e = e // n2
    place += e % n1 * s1
    return place + e // n1 * s0


@triton.jit
def _kernel(x, y, out, size, n1, n2, n3, n4, n5, x0, x1, x2, x3, x4, x5,
            y0, y1, y2, y3, y4, y5, BLOCK: tl.constexpr):
    pid = tl.program_id(0).to(tl.int64)
    step = tl.num_programs(0).to(tl.int64) * BLOCK
    for start in range(pid * BLOCK, size, step):
        e = start + tl.arange(0, BLOCK).to(tl.int64)
        ok = e < size
        a = tl.load(x + _at(e, n1, n2, n3, n4, n5, x0, x1, x2, x3, x4, x5), mask=ok, other=0.0)
        b = tl.load(y + _at(e, n1, n2, n3, n4, n5, y0, y1, y2, y3, y4, y5), mask=ok, other=0.0)
        p = a.to(tl.float32) * b.to(tl.float32)
        tl.store(out + e, p.to(out.dtype.element_ty), mask=ok)


def triton_vector_mul(x, y):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if not out.numel():
        return out
    dims = []  # size, stride of x, of y; neighbours that step alike are one
    for n, a, b in zip(x.shape, x.stride(), y.stride()):
        if n == 1:
            continue
        if dims and dims[-1][1] == n * a and dims[-1][2] == n * b:
            dims[-1] = dims[-1][0] * n, a, b
        else:
            dims.append((n, a, b))
    if len(dims) > 6:
        x, y = x.contiguous(), y.contiguous()
        dims = [(x.numel(), 1, 1)]
    dims = [(1, 0, 0)] * (6 - len(dims)) + dims
    sizes, xs, ys = zip(*dims)
    grid = (min(64, triton.cdiv(out.numel(), 1024)),)
    _kernel[grid](x, y, out, out.numel(), *sizes[1:], *xs, *ys, BLOCK=1024)
    return out
