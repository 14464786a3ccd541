"""The plan of a length, with the number of its steps, serves all lengths of the same bucket.

op: layer_norm
status: failed
cause: stale_state
"""

import torch
import triton
import triton.language as tl

_plans = {}


@triton.jit
def norm_kernel(
    x_ptr, weight_ptr, bias_ptr, out_ptr, n_cols, eps, STEPS: tl.constexpr, BLOCK: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64) * n_cols
    lanes = tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for step in range(STEPS):
        cols = step * BLOCK + lanes
        acc += tl.load(x_ptr + row + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
    mean = tl.sum(acc, axis=0) / n_cols
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for step in range(STEPS):
        cols = step * BLOCK + lanes
        x = tl.load(x_ptr + row + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
        d = tl.where(cols < n_cols, x - mean, 0.0)
        acc += d * d
    rstd = 1.0 / tl.sqrt(tl.sum(acc, axis=0) / n_cols + eps)
    for step in range(STEPS):
        cols = step * BLOCK + lanes
        mask = cols < n_cols
        x = tl.load(x_ptr + row + cols, mask=mask, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + cols, mask=mask, other=0.0).to(tl.float32)
        bias = tl.load(bias_ptr + cols, mask=mask, other=0.0).to(tl.float32)
        tl.store(out_ptr + row + cols, (x - mean) * rstd * weight + bias, mask=mask)


def _plan(n_cols):
    block = 256 if n_cols < 4096 else 1024
    bucket = (block, n_cols // block)
    if bucket not in _plans:
        _plans[bucket] = {"STEPS": triton.cdiv(n_cols, block), "BLOCK": block}
    return _plans[bucket]


def triton_layer_norm(x, weight, bias, eps=1e-5):
    rows = x.contiguous().view(-1, x.shape[-1])
    out = torch.empty_like(rows)
    n_rows, n_cols = rows.shape
    norm_kernel[(n_rows,)](
        rows, weight.contiguous(), bias.contiguous(), out, n_cols, eps, **_plan(n_cols)
    )
    return out.view(x.shape)
