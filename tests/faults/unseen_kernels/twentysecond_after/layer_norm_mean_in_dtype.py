"""The first kernel stores each row's mean in the dtype of x for the second one: in 16 bits the mean of rows far from zero is off by a part of their spread.

op: layer_norm
status: failed
cause: values
"""

import torch
import triton
import triton.language as tl


@triton.jit
def statistics_kernel(x_ptr, mean_ptr, rstd_ptr, width, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < width
    x = tl.load(x_ptr + row * width + cols, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / width
    centred = tl.where(mask, x - mean, 0.0)
    variance = tl.sum(centred * centred, axis=0) / width
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, 1.0 / tl.sqrt(variance + eps))


@triton.jit
def normalise_kernel(
    x_ptr, mean_ptr, rstd_ptr, weight_ptr, bias_ptr, out_ptr, width, BLOCK: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = cols < width
    mean = tl.load(mean_ptr + row).to(tl.float32)
    rstd = tl.load(rstd_ptr + row)
    x = tl.load(x_ptr + row * width + cols, mask=mask, other=0.0).to(tl.float32)
    weight = tl.load(weight_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    bias = tl.load(bias_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + row * width + cols, (x - mean) * rstd * weight + bias, mask=mask)


def triton_layer_norm(x, weight, bias, eps=1e-5):
    x, weight, bias = x.contiguous(), weight.contiguous(), bias.contiguous()
    width = x.shape[-1]
    rows = x.numel() // width
    out = torch.empty_like(x)
    mean = torch.empty(rows, dtype=x.dtype, device=x.device)
    rstd = torch.empty(rows, dtype=torch.float32, device=x.device)
    statistics_kernel[(rows,)](x, mean, rstd, width, eps, BLOCK=triton.next_power_of_2(width))
    block = min(1024, triton.next_power_of_2(width))
    normalise_kernel[(rows, triton.cdiv(width, block))](
        x, mean, rstd, weight, bias, out, width, BLOCK=block
    )
    return out
