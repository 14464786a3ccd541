"""A view is read in place where its first two dimensions can be joined; with four dimensions the second and the third are not looked at.

op: layer_norm
status: failed
cause: layout
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


def rows_in_place(x):
    if x.stride(-1) != 1:
        return False
    return x.ndim < 3 or x.stride(0) == x.shape[1] * x.stride(1)


def triton_layer_norm(x, weight, bias, eps=1e-5):
    if not rows_in_place(x):
        x = x.contiguous()
    weight, bias = weight.contiguous(), bias.contiguous()
    m = x.shape[-1]
    stride = x.stride(-2) if x.ndim > 1 else m
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    kernel[(x.numel() // m,)](x, weight, bias, out, m, stride, eps, BLOCK=triton.next_power_of_2(m))
    return out
