"""Means and spreads of blocks are merged by their numbers of elements.

op: layer_norm
status: passed
drawn: no
round: third
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, w_ptr, b_ptr, out_ptr, n_cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    count, mean, spread = 0.0, 0.0, 0.0
    for start in range(0, n_cols, BLOCK):
        mask = start + lanes < n_cols
        x = tl.load(x_ptr + row * n_cols + start + lanes, mask=mask, other=0.0).to(tl.float32)
        own = tl.minimum(BLOCK, n_cols - start).to(tl.float32)
        own_mean = tl.sum(x, axis=0) / own
        centred = tl.where(mask, x - own_mean, 0.0)
        off = own_mean - mean
        share = own / (count + own)
        spread += tl.sum(centred * centred, axis=0) + off * off * count * share
        mean += off * share
        count += own
    scale = 1.0 / tl.sqrt(spread / n_cols + eps)
    for start in range(0, n_cols, BLOCK):
        cols = start + lanes
        mask = cols < n_cols
        x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
        w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
        b = tl.load(b_ptr + cols, mask=mask, other=0.0).to(tl.float32)
        tl.store(out_ptr + row * n_cols + cols, (x - mean) * scale * w + b, mask=mask)


def triton_layer_norm(x, weight, bias, eps=1e-5):
    rows = x.contiguous().view(-1, x.shape[-1])
    out = torch.empty_like(rows)
    n_rows, n_cols = rows.shape
    kernel[(n_rows,)](rows, weight.contiguous(), bias.contiguous(), out, n_cols, eps, BLOCK=512)
    return out.view(x.shape)
