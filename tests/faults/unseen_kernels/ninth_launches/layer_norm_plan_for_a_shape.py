"""Launches: what a launch needs is saved for each shape, eps included, so a later call with another eps gets the first one's.

op: layer_norm
status: failed
cause: scalar
"""

import functools

import torch
import triton
import triton.language as tl

_PLANS = {}


@triton.jit
def kernel(x_ptr, w_ptr, b_ptr, out_ptr, n_rows, n_cols, eps, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    cols = tl.arange(0, BLOCK)[None, :]
    mask = (rows < n_rows) & (cols < n_cols)
    x = tl.load(x_ptr + rows * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=1)[:, None] / n_cols
    centred = tl.where(mask, x - mean, 0.0)
    scale = 1.0 / tl.sqrt(tl.sum(centred * centred, axis=1)[:, None] / n_cols + eps)
    w = tl.load(w_ptr + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
    b = tl.load(b_ptr + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
    tl.store(out_ptr + rows * n_cols + cols, centred * scale * w + b, mask=mask)


def _plan(n_rows, n_cols, eps):
    """Return the launch for rows of this shape; choosing it costs more than a short kernel."""
    key = n_rows, n_cols
    if key not in _PLANS:
        BLOCK = triton.next_power_of_2(n_cols)
        ROWS = max(1, min(8, 1024 // BLOCK))
        launch = kernel[(triton.cdiv(n_rows, ROWS),)]
        _PLANS[key] = functools.partial(
            launch, n_rows=n_rows, n_cols=n_cols, eps=eps, ROWS=ROWS, BLOCK=BLOCK
        )
    return _PLANS[key]


def triton_layer_norm(x, weight, bias, eps=1e-5):
    rows = x.contiguous().view(-1, x.shape[-1])
    out = torch.empty_like(rows)
    _plan(*rows.shape, eps)(rows, weight.contiguous(), bias.contiguous(), out)
    return out.view(x.shape)
