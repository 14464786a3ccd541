"""delta^2 is weighted by m / (n + m) instead of n * m / (n + m) where the spread of a block is joined with that of the blocks before: the variance is too small.

It shows at x (3, 4097), weight, bias randn, eps 1e-5, float32; clearest where the blocks' means differ (x + a ramp).

op: layer_norm
status: failed
cause: merge
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, w_ptr, b_ptr, out_ptr, n_cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    lanes = tl.arange(0, BLOCK)
    mean = 0.0
    spread = 0.0
    for start in range(0, n_cols, BLOCK):
        cols = start + lanes
        mask = cols < n_cols
        x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
        count = tl.minimum(n_cols - start, BLOCK).to(tl.float32)
        block_mean = tl.sum(x, axis=0) / count
        centred = tl.where(mask, x - block_mean, 0.0)
        delta = block_mean - mean
        share = count / (start + count)
        mean += delta * share
        spread += tl.sum(centred * centred, axis=0) + delta * delta * tl.where(start > 0, share, 0.0)
    scale = 1.0 / tl.sqrt(spread / n_cols + eps)
    for start in range(0, n_cols, BLOCK):
        cols = start + lanes
        mask = cols < n_cols
        x = tl.load(x_ptr + row * n_cols + cols, mask=mask).to(tl.float32)
        w = tl.load(w_ptr + cols, mask=mask).to(tl.float32)
        b = tl.load(b_ptr + cols, mask=mask).to(tl.float32)
        tl.store(out_ptr + row * n_cols + cols, (x - mean) * scale * w + b, mask=mask)


def triton_layer_norm(x, weight, bias, eps=1e-5):
    rows = x.contiguous().view(-1, x.shape[-1])
    out = torch.empty_like(rows)
    n_rows, n_cols = rows.shape
    kernel[(n_rows,)](rows, weight.contiguous(), bias.contiguous(), out, n_cols, eps, BLOCK=256)
    return out.view(x.shape)
