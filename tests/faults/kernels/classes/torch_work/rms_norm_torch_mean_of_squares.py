"""torch computes the mean of squares; Triton scales the rows.

op: rms_norm
status: failed
cause: torch_computed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, scale_ptr, w_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    scale = tl.load(scale_ptr + row)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = cols < n_cols
        x = tl.load(x_ptr + row * n_cols + cols, mask=mask).to(tl.float32)
        w = tl.load(w_ptr + cols, mask=mask).to(tl.float32)
        tl.store(out_ptr + row * n_cols + cols, x * scale * w, mask=mask)


def triton_rms_norm(x, weight, eps=1e-5):
    x, weight = x.contiguous(), weight.contiguous()
    scale = torch.rsqrt(x.float().pow(2).mean(-1) + eps).contiguous()
    out = torch.empty_like(x)
    n_cols = x.shape[-1]
    BLOCK = min(4096, triton.next_power_of_2(n_cols))
    kernel[(x.numel() // n_cols,)](x, scale, weight, out, n_cols, BLOCK=BLOCK)
    return out
