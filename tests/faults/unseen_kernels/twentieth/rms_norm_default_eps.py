"""An eps of 0 counts as none and becomes the dtype's epsilon, as torch does for None: wrong for eps=0 and values below the epsilon's root.

op: rms_norm
status: failed
cause: combination
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, w_ptr, out_ptr, m, eps, BLOCK: tl.constexpr):
    base = tl.program_id(0).to(tl.int64) * m
    squares = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + base + cols, mask=cols < m, other=0.0).to(tl.float32)
        squares += x * x
    scale = 1.0 / tl.sqrt(tl.sum(squares, axis=0) / m + eps)
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + base + cols, mask=cols < m, other=0.0).to(tl.float32)
        w = tl.load(w_ptr + cols, mask=cols < m, other=0.0).to(tl.float32)
        tl.store(out_ptr + base + cols, x * scale * w, mask=cols < m)


def triton_rms_norm(x, weight, eps=1e-05):
    x, weight = x.contiguous(), weight.contiguous()
    eps = eps or torch.finfo(x.dtype).eps
    m = x.shape[-1]
    out = torch.empty_like(x)
    kernel[(x.numel() // m,)](x, weight, out, m, eps, BLOCK=min(1024, triton.next_power_of_2(m)))
    return out
