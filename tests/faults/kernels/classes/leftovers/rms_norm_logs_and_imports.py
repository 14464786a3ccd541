"""It writes a debug message to a logger of its own and imports a module in the call.

op: rms_norm
status: passed
drawn: no
round: second
"""

import logging

import torch
import triton
import triton.language as tl

LOG = logging.getLogger("rms_norm_kernel")
LOG.addHandler(logging.NullHandler())


@triton.jit
def kernel(x_ptr, w_ptr, out_ptr, n_cols, eps, BLOCK: tl.constexpr):
    base = tl.program_id(0).to(tl.int64) * n_cols
    lanes = tl.arange(0, BLOCK)
    squares = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n_cols, BLOCK):
        x = tl.load(x_ptr + base + start + lanes, mask=start + lanes < n_cols, other=0.0)
        squares += x.to(tl.float32) * x.to(tl.float32)
    scale = tl.rsqrt(tl.sum(squares, axis=0) / n_cols + eps)
    for start in range(0, n_cols, BLOCK):
        cols = start + lanes
        x = tl.load(x_ptr + base + cols, mask=cols < n_cols).to(tl.float32)
        w = tl.load(w_ptr + cols, mask=cols < n_cols).to(tl.float32)
        tl.store(out_ptr + base + cols, x * scale * w, mask=cols < n_cols)


def triton_rms_norm(x, weight, eps=1e-5):
    import colorsys  # a module that nobody has imported yet

    LOG.debug("%s %s %s", x.shape, x.dtype, colorsys.__name__)
    x, weight = x.contiguous(), weight.contiguous()
    n_cols = x.shape[-1]
    out = torch.empty_like(x)
    BLOCK = min(2048, triton.next_power_of_2(n_cols))
    kernel[(x.numel() // n_cols,)](x, weight, out, n_cols, eps, BLOCK=BLOCK)
    return out
