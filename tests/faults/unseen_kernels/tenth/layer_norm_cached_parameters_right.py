"""Weight and bias are packed once for each shape and compared with what was packed, by content.

op: layer_norm
status: passed
"""

import torch
import triton
import triton.language as tl

_packed = {}


@triton.jit
def kernel(x_ptr, packed_ptr, out_ptr, n_cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / n_cols
    centred = tl.where(mask, x - mean, 0.0)
    scale = 1.0 / tl.sqrt(tl.sum(centred * centred, axis=0) / n_cols + eps)
    weight = tl.load(packed_ptr + 2 * cols, mask=mask, other=0.0)
    bias = tl.load(packed_ptr + 2 * cols + 1, mask=mask, other=0.0)
    tl.store(out_ptr + row * n_cols + cols, centred * scale * weight + bias, mask=mask)


def pack(weight, bias):
    key = weight.shape, weight.dtype, bias.dtype, weight.device
    visible, packed = _packed.get(key, (None, None))
    parameters = torch.stack([weight.detach().float(), bias.detach().float()], dim=1)
    if visible is None or not torch.equal(visible, parameters):
        packed = parameters.clone()
        _packed[key] = parameters, packed
    return packed


def triton_layer_norm(x, weight, bias, eps=1e-5):
    n_cols = x.shape[-1]
    x = x.contiguous()
    out = torch.empty_like(x)
    BLOCK = triton.next_power_of_2(n_cols)
    kernel[(x.numel() // n_cols,)](x, pack(weight, bias), out, n_cols, eps, BLOCK=BLOCK)
    return out
