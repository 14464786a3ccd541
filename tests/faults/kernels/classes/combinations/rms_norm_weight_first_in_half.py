"""Short rows of half types are multiplied by the weight before they are scaled.

op: rms_norm
status: failed
cause: overflow
held_out: yes
round: second
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, w_ptr, out_ptr, n_cols, eps, SHORT: tl.constexpr, BLOCK: tl.constexpr):
    base = tl.program_id(0).to(tl.int64) * n_cols
    cols = tl.arange(0, BLOCK)
    squares = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n_cols, BLOCK):
        x = tl.load(x_ptr + base + start + cols, mask=start + cols < n_cols, other=0.0)
        squares += x.to(tl.float32) * x.to(tl.float32)
    scale = tl.rsqrt(tl.sum(squares, axis=0) / n_cols + eps)
    for start in range(0, n_cols, BLOCK):
        here = start + cols
        x = tl.load(x_ptr + base + here, mask=here < n_cols)
        w = tl.load(w_ptr + here, mask=here < n_cols)
        if SHORT:
            y = (x * w).to(tl.float32) * scale
        else:
            y = x.to(tl.float32) * scale * w.to(tl.float32)
        tl.store(out_ptr + base + here, y, mask=here < n_cols)


def triton_rms_norm(x, weight, eps=1e-5):
    x, weight = x.contiguous(), weight.contiguous()
    n_cols = x.shape[-1]
    out = torch.empty_like(x)
    BLOCK = min(1024, triton.next_power_of_2(n_cols))
    kernel[(x.numel() // n_cols,)](x, weight, out, n_cols, eps, SHORT=n_cols <= 64, BLOCK=BLOCK)
    return out
