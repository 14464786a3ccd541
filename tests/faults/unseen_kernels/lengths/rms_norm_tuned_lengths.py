"""Lengths of a table take their tuned block unmasked; it does not divide 5,120: a tail is left.

op: rms_norm
status: failed
cause: length
"""

import torch
import triton
import triton.language as tl

TUNED = {  # hidden size: (block, warps)
    768: (256, 2), 1024: (1024, 4), 2048: (2048, 8), 2560: (512, 4), 3072: (1024, 4),
    4096: (2048, 8), 5120: (2048, 8), 6144: (2048, 8), 8192: (4096, 16),
}  # fmt: skip


@triton.jit
def whole_kernel(
    x_ptr, weight_ptr, out_ptr, eps, N: tl.constexpr, STEPS: tl.constexpr, BLOCK: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64) * N
    lanes = tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for step in tl.static_range(STEPS):
        x = tl.load(x_ptr + row + step * BLOCK + lanes).to(tl.float32)
        acc += x * x
    rstd = tl.rsqrt(tl.sum(acc, axis=0) / N + eps)
    for step in tl.static_range(STEPS):
        x = tl.load(x_ptr + row + step * BLOCK + lanes).to(tl.float32)
        weight = tl.load(weight_ptr + step * BLOCK + lanes).to(tl.float32)
        tl.store(out_ptr + row + step * BLOCK + lanes, x * rstd * weight)


@triton.jit
def masked_kernel(x_ptr, weight_ptr, out_ptr, n_cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * n_cols
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
        acc += x * x
    rstd = tl.rsqrt(tl.sum(acc, axis=0) / n_cols + eps)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = cols < n_cols
        x = tl.load(x_ptr + row + cols, mask=mask, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + cols, mask=mask, other=0.0).to(tl.float32)
        tl.store(out_ptr + row + cols, x * rstd * weight, mask=mask)


def triton_rms_norm(x, weight, eps=1e-5):
    rows, weight = x.contiguous().view(-1, x.shape[-1]), weight.contiguous()
    out = torch.empty_like(rows)
    n_rows, n_cols = rows.shape
    if n_cols in TUNED:
        block, warps = TUNED[n_cols]
        whole_kernel[(n_rows,)](
            rows, weight, out, eps, N=n_cols, STEPS=n_cols // block, BLOCK=block, num_warps=warps
        )
    else:
        block = min(1024, triton.next_power_of_2(n_cols))
        masked_kernel[(n_rows,)](rows, weight, out, n_cols, eps, BLOCK=block)
    return out.view(x.shape)
