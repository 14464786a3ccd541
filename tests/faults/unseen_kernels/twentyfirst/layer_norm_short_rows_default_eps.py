"""Many short rows share a 2-D block, whose eps is a constant of the kernel: another eps than 1e-5 is ignored there.

op: layer_norm
status: failed
cause: combination
"""

import torch
import triton
import triton.language as tl


@triton.jit
def short_rows(
    x_ptr, weight_ptr, bias_ptr, out_ptr, rows, cols,
    ROWS: tl.constexpr, BLOCK: tl.constexpr, EPS: tl.constexpr = 1e-5,
):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    col = tl.arange(0, BLOCK)
    inside = (row < rows)[:, None] & (col < cols)[None, :]
    at = row[:, None].to(tl.int64) * cols + col[None, :]
    x = tl.load(x_ptr + at, mask=inside, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=1) / cols
    centred = tl.where(inside, x - mean[:, None], 0.0)
    scale = 1.0 / tl.sqrt(tl.sum(centred * centred, axis=1) / cols + EPS)
    weight = tl.load(weight_ptr + col, mask=col < cols, other=0.0).to(tl.float32)
    bias = tl.load(bias_ptr + col, mask=col < cols, other=0.0).to(tl.float32)
    y = centred * scale[:, None] * weight[None, :] + bias[None, :]
    tl.store(out_ptr + at, y, mask=inside)


@triton.jit
def one_row(x_ptr, weight_ptr, bias_ptr, out_ptr, cols, eps, BLOCK: tl.constexpr):
    base = tl.program_id(0).to(tl.int64) * cols
    col = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + base + col, mask=col < cols, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / cols
    centred = tl.where(col < cols, x - mean, 0.0)
    scale = 1.0 / tl.sqrt(tl.sum(centred * centred, axis=0) / cols + eps)
    weight = tl.load(weight_ptr + col, mask=col < cols, other=0.0).to(tl.float32)
    bias = tl.load(bias_ptr + col, mask=col < cols, other=0.0).to(tl.float32)
    tl.store(out_ptr + base + col, centred * scale * weight + bias, mask=col < cols)


def triton_layer_norm(x, weight, bias, eps=1e-5):
    x, weight, bias = x.contiguous(), weight.contiguous(), bias.contiguous()
    cols = x.shape[-1]
    rows = x.numel() // cols
    out = torch.empty_like(x)
    block = triton.next_power_of_2(cols)
    if cols <= 128 and rows >= 512:
        short_rows[(triton.cdiv(rows, 16),)](x, weight, bias, out, rows, cols, ROWS=16, BLOCK=block)
    else:
        one_row[(rows,)](x, weight, bias, out, cols, eps, BLOCK=block)
    return out
