"""A plan is saved for each width and dtype, with eps in it; a later call of that width with another eps gets the first one.

op: rms_norm
status: failed
cause: state
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, w_ptr, out_ptr, n_cols, EPS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    rstd = 1.0 / tl.sqrt(tl.sum(x * x, axis=0) / n_cols + EPS)
    tl.store(out_ptr + row * n_cols + cols, x * rstd * w, mask=mask)


PLANS = {}


def plan(n_cols, dtype, eps):
    if (n_cols, dtype) not in PLANS:
        block = triton.next_power_of_2(n_cols)
        PLANS[n_cols, dtype] = {"EPS": eps, "BLOCK": block, "num_warps": min(max(block // 256, 1), 16)}
    return PLANS[n_cols, dtype]


def triton_rms_norm(x, weight, eps=1e-5):
    x, weight = x.contiguous(), weight.contiguous()
    out = torch.empty_like(x)
    n_cols = x.shape[-1]
    kernel[(x.numel() // n_cols,)](x, weight, out, n_cols, **plan(n_cols, x.dtype, eps))
    return out
