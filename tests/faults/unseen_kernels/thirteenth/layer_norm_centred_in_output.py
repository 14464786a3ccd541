"""Rows over 4096 store the distances to the mean in the output before they are scaled: in float16 a distance over 65504 becomes infinite.

op: layer_norm
status: failed
cause: combination
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, weight_ptr, bias_ptr, out_ptr, m, stride, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < m
    x = tl.load(x_ptr + row * stride + cols, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / m
    centred = tl.where(mask, x - mean, 0.0)
    scale = 1.0 / tl.sqrt(tl.sum(centred * centred, axis=0) / m + eps)
    weight = tl.load(weight_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    bias = tl.load(bias_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + row * m + cols, centred * scale * weight + bias, mask=mask)


@triton.jit
def long_kernel(x_ptr, weight_ptr, bias_ptr, out_ptr, m, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * m
    out_ptr += row * m
    parts = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        parts += tl.load(x_ptr + cols, mask=cols < m, other=0.0).to(tl.float32)
    mean = tl.sum(parts, axis=0) / m
    squares = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + cols, mask=cols < m, other=0.0).to(tl.float32)
        centred = tl.where(cols < m, x - mean, 0.0)
        squares += centred * centred
        tl.store(out_ptr + cols, centred.to(out_ptr.dtype.element_ty), mask=cols < m)
    scale = 1.0 / tl.sqrt(tl.sum(squares, axis=0) / m + eps)
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        centred = tl.load(out_ptr + cols, mask=cols < m, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + cols, mask=cols < m, other=0.0).to(tl.float32)
        bias = tl.load(bias_ptr + cols, mask=cols < m, other=0.0).to(tl.float32)
        tl.store(out_ptr + cols, centred * scale * weight + bias, mask=cols < m)


def triton_layer_norm(x, weight, bias, eps=1e-5):
    x, weight, bias = x.contiguous(), weight.contiguous(), bias.contiguous()
    m = x.shape[-1]
    out = torch.empty_like(x)
    grid = (x.numel() // m,)
    if m > 4096:
        long_kernel[grid](x, weight, bias, out, m, eps, BLOCK=1024)
    else:
        kernel[grid](x, weight, bias, out, m, m, eps, BLOCK=triton.next_power_of_2(m))
    return out
