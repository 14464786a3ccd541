"""The launch plan is kept by the number of bits of m: after m = 1024 (11 bits), m = 1500 gets a block of 1024.

op: rms_norm
status: failed
cause: plan
"""

import torch
import triton
import triton.language as tl

PLANS = {}


@triton.jit
def kernel(
    x_ptr, weight_ptr, out_ptr, n_rows, m, eps, ROWS: tl.constexpr, BLOCK: tl.constexpr
):
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    cols = tl.arange(0, BLOCK)
    mask = (rows < n_rows)[:, None] & (cols < m)[None, :]
    places = rows[:, None] * m + cols[None, :]
    x = tl.load(x_ptr + places, mask=mask, other=0.0).to(tl.float32)
    weight = tl.load(weight_ptr + cols, mask=cols < m, other=0.0).to(tl.float32)
    rstd = 1.0 / tl.sqrt(tl.sum(x * x, axis=1) / m + eps)
    tl.store(out_ptr + places, x * rstd[:, None] * weight[None, :], mask=mask)


def plan_of(m, dtype):
    """Block, rows a program and warps for rows of m elements: the same for all of one size."""
    key = (m.bit_length(), dtype)
    if key not in PLANS:
        block = triton.next_power_of_2(m)
        rows = max(1, 2048 // block)
        warps = min(16, max(4, block * rows // 1024))
        PLANS[key] = block, rows, warps
    return PLANS[key]


def triton_rms_norm(x, weight, eps=1e-5):
    x, weight = x.contiguous(), weight.contiguous()
    out = torch.empty_like(x)
    m = x.shape[-1]
    n_rows = x.numel() // m
    block, rows, warps = plan_of(m, x.dtype)
    kernel[(triton.cdiv(n_rows, rows),)](
        x, weight, out, n_rows, m, eps, ROWS=rows, BLOCK=block, num_warps=warps
    )
    return out
