"""A block in which no element is above -8 is filled with zeros, without erf.
NaN is not above -8 either: a NaN in a block (1024 elements) of large negative numbers becomes 0.

op: gelu
status: failed
cause: NaN in a skipped block
"""
import torch
import triton
import triton.language as tl


@triton.jit
def _kernel(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n, other=-100.0).to(tl.float32)
    live = tl.sum((v > -8.0).to(tl.int32))
    if live == 0:  # erf rounds to -1 for all of them
        tl.store(out + i, tl.zeros((BLOCK,), out.dtype.element_ty), mask=i < n)
    else:
        y = 0.5 * v * (1 + tl.erf(v * 0.7071067811865476))
        tl.store(out + i, y.to(out.dtype.element_ty), mask=i < n)


def triton_gelu(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    if n:
        _kernel[(triton.cdiv(n, 1024),)](x, out, n, BLOCK=1024)
    return out
