"""When the statistics of a block are merged into the running ones, the term delta^2 * n_a * n_b / n is left out, so the variance lacks the spread between the blocks' means.

It shows at x = randn(1, 1000), float32, about 0.5 % (much more where a row drifts; right for rows of up to 128 columns).

op: layer_norm
status: failed
cause: merging
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, w_ptr, b_ptr, out_ptr, n_cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    count = 0.0
    mean = 0.0
    m2 = 0.0
    for start in range(0, n_cols, BLOCK):
        cols = start + lanes
        mask = cols < n_cols
        x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
        block_count = tl.sum(mask.to(tl.float32), axis=0)
        block_mean = tl.sum(x, axis=0) / block_count
        centred = tl.where(mask, x - block_mean, 0.0)
        block_m2 = tl.sum(centred * centred, axis=0)
        delta = block_mean - mean
        count += block_count
        mean += delta * block_count / count
        m2 += block_m2
    scale = 1.0 / tl.sqrt(m2 / n_cols + eps)
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
    kernel[(n_rows,)](rows, weight.contiguous(), bias.contiguous(), out, n_cols, eps, BLOCK=128)
    return out.view(x.shape)
