"""Online softmax that leaves its running maximum stale while it grows by less than 126 powers of two.
One exponential is then finite, but a sum of many of them overflows float32: the row becomes zeros.

op: softmax
status: failed
cause: lazy rescaling
"""
import torch
import triton
import triton.language as tl


@triton.jit
def _kernel(x, out, cols, BLOCK: tl.constexpr, SLACK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x += row * cols
    out += row * cols
    lanes = tl.arange(0, BLOCK)
    base = tl.full((), float("-inf"), tl.float32)
    total = tl.zeros((), tl.float32)
    for start in range(0, cols, BLOCK):
        c = start + lanes
        v = tl.load(x + c, mask=c < cols, other=float("-inf")).to(tl.float32)
        top = tl.max(v)
        if top > base + SLACK:  # rescaling is rare: 2^126 is still a float32
            total = total * tl.exp(base - top)
            base = top
        safe = tl.where(base == float("-inf"), 0.0, base)
        total += tl.sum(tl.exp(v - safe))
    safe = tl.where(base == float("-inf"), 0.0, base)
    for start in range(0, cols, BLOCK):
        c = start + lanes
        v = tl.load(x + c, mask=c < cols, other=float("-inf")).to(tl.float32)
        p = tl.exp(v - safe) / total
        tl.store(out + c, p.to(out.dtype.element_ty), mask=c < cols)


def triton_softmax(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    if x.numel():
        cols = x.shape[-1]
        block = min(1024, triton.next_power_of_2(cols))
        _kernel[(x.numel() // cols,)](x, out, cols, BLOCK=block, SLACK=126 * 0.6931471805599453)
    return out
