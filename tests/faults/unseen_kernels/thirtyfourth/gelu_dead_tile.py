"""A tile without an element above -6 is written as zeros at once. A NaN is not above -6 either: in a tile
(256) that is else all below -6 it becomes 0.

op: gelu
status: failed
cause: NaN in a skipped tile
"""
import torch
import triton
import triton.language as tl


@triton.jit
def _kernel(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    value = tl.load(x + at, mask=mask, other=0.0).to(tl.float32)
    alive = tl.sum((value > -6.0).to(tl.int32), axis=0)
    if alive == 0:  # gelu(-6) is -6e-9
        tl.store(out + at, tl.zeros((BLOCK,), out.dtype.element_ty), mask=mask)
    else:
        y = 0.5 * value * (1.0 + tl.erf(value * 0.7071067811865476))
        tl.store(out + at, y.to(out.dtype.element_ty), mask=mask)


def triton_gelu(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    if x.numel():
        _kernel[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), BLOCK=256)
    return out
