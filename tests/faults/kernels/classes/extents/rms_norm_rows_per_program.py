"""256 programs share the rows evenly; the remainder of the division is left out.

op: rms_norm
status: failed
cause: truncated_extent
held_out: yes
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, w_ptr, out_ptr, n_cols, rows_each, eps, BLOCK: tl.constexpr):
    first = tl.program_id(0).to(tl.int64) * rows_each
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    for step in range(0, rows_each):
        row = first + step
        x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
        scale = tl.rsqrt(tl.sum(x * x, axis=0) / n_cols + eps)
        tl.store(out_ptr + row * n_cols + cols, x * scale * w, mask=mask)


def triton_rms_norm(x, weight, eps=1e-5):
    x, weight = x.contiguous(), weight.contiguous()
    out = torch.empty_like(x)
    n_cols = x.shape[-1]
    n_rows = x.numel() // n_cols
    programs = min(256, n_rows)
    kernel[(programs,)](
        x, weight, out, n_cols, n_rows // programs, eps, BLOCK=triton.next_power_of_2(n_cols)
    )
    return out
