"""Nothing wrong: every lane keeps its own count, mean and squares, lanes of unequal counts are joined at the end.

op: layer_norm
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, weight_ptr, bias_ptr, out_ptr, n_cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    count = tl.zeros((BLOCK,), dtype=tl.float32)
    mean = tl.zeros((BLOCK,), dtype=tl.float32)
    squares = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n_cols, BLOCK):
        mask = start + lanes < n_cols
        x = tl.load(x_ptr + row * n_cols + start + lanes, mask=mask, other=0.0).to(tl.float32)
        count += mask.to(tl.float32)
        step = x - mean
        new = mean + tl.where(mask, step / tl.maximum(count, 1.0), 0.0)
        squares += tl.where(mask, step * (x - new), 0.0)
        mean = new
    # about the first lane's mean, so that a large common part does not cost digits
    first = tl.sum(tl.where(lanes == 0, mean, 0.0), axis=0)
    center = first + tl.sum(tl.where(count > 0, count * (mean - first), 0.0), axis=0) / n_cols
    apart = tl.where(count > 0, mean - center, 0.0)
    variance = tl.sum(squares + count * apart * apart, axis=0) / n_cols
    rstd = 1.0 / tl.sqrt(variance + eps)
    for start in range(0, n_cols, BLOCK):
        cols = start + lanes
        mask = cols < n_cols
        x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + cols, mask=mask, other=0.0).to(tl.float32)
        bias = tl.load(bias_ptr + cols, mask=mask, other=0.0).to(tl.float32)
        tl.store(out_ptr + row * n_cols + cols, (x - center) * rstd * weight + bias, mask=mask)


def triton_layer_norm(x, weight, bias, eps=1e-5):
    if x.numel() == 0:
        return torch.empty_like(x)
    rows = x.contiguous().view(-1, x.shape[-1])
    weight, bias = weight.contiguous(), bias.contiguous()
    out = torch.empty_like(rows)
    n_rows, n_cols = rows.shape
    kernel[(n_rows,)](
        rows, weight, bias, out, n_cols, eps, BLOCK=min(512, triton.next_power_of_2(n_cols))
    )
    return out.view(x.shape)
