"""Eps is raised to the smallest normal number of the input's dtype, which in float16 is larger than any usual eps.

op: layer_norm
status: failed
cause: scalar
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _moments(x, m, n):
    mean = tl.sum(x, axis=0) / n
    d = tl.where(m, x - mean, 0.0)
    return d, tl.sum(d * d, axis=0) / n


@triton.jit
def _layer_norm(
    x_ptr, w_ptr, b_ptr, out_ptr, n_rows, n_cols, eps, PER: tl.constexpr, BLOCK: tl.constexpr
):
    cols = tl.arange(0, BLOCK)
    m = cols < n_cols
    w = tl.load(w_ptr + cols, mask=m, other=0.0).to(tl.float32)
    b = tl.load(b_ptr + cols, mask=m, other=0.0).to(tl.float32)
    first = tl.program_id(0).to(tl.int64) * PER
    for k in tl.static_range(PER):
        row = first + k
        live = m & (row < n_rows)
        x = tl.load(x_ptr + row * n_cols + cols, mask=live, other=0.0).to(tl.float32)
        d, var = _moments(x, live, n_cols)
        tl.store(out_ptr + row * n_cols + cols, d / tl.sqrt(var + eps) * w + b, mask=live)


def triton_layer_norm(x, weight, bias, eps=1e-5):
    rows = x.contiguous().view(-1, x.shape[-1])
    out = torch.empty_like(rows)
    n_rows, n_cols = rows.shape
    eps = max(eps, torch.finfo(x.dtype).tiny)  # never one that the dtype flushes to zero
    per = 4 if n_cols <= 512 else 1
    _layer_norm[(triton.cdiv(n_rows, per),)](
        rows, weight.contiguous(), bias.contiguous(), out, n_rows, n_cols, eps,
        PER=per, BLOCK=triton.next_power_of_2(n_cols),
    )
    return out.view(x.shape)
