"""No copy where the last dimension is dense: the rows of three dimensions are found by stride(-2) alone, also where a batch is longer than its rows.

op: gelu
status: failed
cause: layout
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n_cols, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * stride + cols, mask=mask).to(tl.float32)
    out = 0.5 * x * (1.0 + tl.math.erf(x * 0.7071067811865476))
    tl.store(out_ptr + row * n_cols + cols, out, mask=mask)


def triton_gelu(x):
    if x.dim() < 2 or x.stride(-1) != 1 or x.stride(-2) < x.shape[-1]:
        x = x.contiguous()
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    n_cols = x.shape[-1]
    stride = x.stride(-2) if x.dim() > 1 else n_cols
    kernel[(out.numel() // n_cols, triton.cdiv(n_cols, 512))](x, out, n_cols, stride, BLOCK=512)
    return out
