"""Reads weight and bias as one buffer where their offsets are a row apart, though they may be in two storages.

op: layer_norm
status: failed
cause: layout
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, weight_ptr, bias_ptr, out_ptr, n, eps, PACKED: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n
    x = tl.load(x_ptr + row * n + cols, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / n
    centred = tl.where(mask, x - mean, 0.0)
    scale = 1.0 / tl.sqrt(tl.sum(centred * centred, axis=0) / n + eps)
    weight = tl.load(weight_ptr + cols, mask=mask).to(tl.float32)
    if PACKED:
        bias = tl.load(weight_ptr + n + cols, mask=mask).to(tl.float32)
    else:
        bias = tl.load(bias_ptr + cols, mask=mask).to(tl.float32)
    tl.store(out_ptr + row * n + cols, centred * scale * weight + bias, mask=mask)


def triton_layer_norm(x, weight, bias, eps=1e-5):
    x, weight, bias = x.contiguous(), weight.contiguous(), bias.contiguous()
    n = x.shape[-1]
    packed = bias.storage_offset() - weight.storage_offset() == n
    out = torch.empty_like(x)
    kernel[(x.numel() // n,)](
        x, weight, bias, out, n, eps, PACKED=packed, BLOCK=triton.next_power_of_2(n)
    )
    return out
