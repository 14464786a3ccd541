"""Rows of a view are taken as evenly spaced if the last two leading dimensions are: in four dimensions the first one may jump.

op: rms_norm
status: failed
cause: strides
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, w_ptr, out_ptr, step, m, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * step
    out_ptr += row * m
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + cols, mask=cols < m, other=0.0).to(tl.float32)
        total += x * x
    scale = 1.0 / tl.sqrt(tl.sum(total, axis=0) / m + eps)
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = cols < m
        x = tl.load(x_ptr + cols, mask=mask, other=0.0).to(tl.float32)
        w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
        tl.store(out_ptr + cols, x * scale * w, mask=mask)


def evenly_spaced(x):
    """Return whether one step leads from each row to the next, so that no copy is needed."""
    if x.dim() < 2 or x.stride(-1) != 1:
        return False
    return x.dim() == 2 or x.stride(-3) == x.shape[-2] * x.stride(-2)


def triton_rms_norm(x, weight, eps=1e-05):
    m = x.shape[-1]
    if evenly_spaced(x):
        step = x.stride(-2)
    else:
        x, step = x.contiguous(), m
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if x.numel():
        BLOCK = min(1024, triton.next_power_of_2(m))
        kernel[(x.numel() // m,)](x, weight.contiguous(), out, step, m, eps, BLOCK=BLOCK)
    return out
