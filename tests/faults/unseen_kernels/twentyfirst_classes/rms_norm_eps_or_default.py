"""An eps of 0 counts as none given (eps or finfo.eps): the dtype's own eps, 0.0078 for bfloat16, is added to the mean of the squares.

op: rms_norm
status: failed
cause: values
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, weight_ptr, out_ptr, m, eps, BLOCK: tl.constexpr):
    base = tl.program_id(0).to(tl.int64) * m
    squares = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + base + cols, mask=cols < m, other=0.0).to(tl.float32)
        squares += x * x
    factor = 1.0 / tl.sqrt(tl.sum(squares, axis=0) / m + eps)
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + base + cols, mask=cols < m, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + cols, mask=cols < m, other=0.0).to(tl.float32)
        tl.store(out_ptr + base + cols, x * factor * weight, mask=cols < m)


def triton_rms_norm(x, weight, eps=1e-05):
    x, weight = x.contiguous(), weight.contiguous()
    m = x.shape[-1]
    eps = eps or torch.finfo(x.dtype).eps
    out = torch.empty_like(x)
    kernel[(x.numel() // m,)](x, weight, out, m, float(eps), BLOCK=min(1024, triton.next_power_of_2(m)))
    return out
