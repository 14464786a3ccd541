"""The stride of the weight is used for the bias too: wrong when only the bias is a column of a table.

op: layer_norm
status: failed
cause: layout
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, weight_ptr, bias_ptr, out_ptr, row_stride, param_stride, m, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < m
    x = tl.load(x_ptr + row * row_stride + cols, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / m
    away = tl.where(mask, x - mean, 0.0)
    scale = 1.0 / tl.sqrt(tl.sum(away * away, axis=0) / m + eps)
    weight = tl.load(weight_ptr + cols * param_stride, mask=mask, other=0.0).to(tl.float32)
    bias = tl.load(bias_ptr + cols * param_stride, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + row * m + cols, away * scale * weight + bias, mask=mask)


def triton_layer_norm(x, weight, bias, eps=1e-05):
    m = x.shape[-1]
    rows = x.reshape(-1, m)
    if rows.stride(1) != 1:
        rows = rows.contiguous()
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    kernel[(rows.shape[0],)](
        rows, weight, bias, out, rows.stride(0), weight.stride(0), m, eps, BLOCK=triton.next_power_of_2(m)
    )
    return out
