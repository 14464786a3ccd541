"""Weight and bias are packed once for a weight and the versions of both: another bias of that version is not visible.

op: layer_norm
status: failed
cause: state
"""

import torch
import triton
import triton.language as tl
from torch.utils.weak import WeakTensorKeyDictionary

_packed = WeakTensorKeyDictionary()


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
    if weight.is_inference() or bias.is_inference():
        return torch.stack([weight, bias], dim=1).float()
    versions = weight._version, bias._version
    saved, packed = _packed.get(weight, (None, None))
    if saved != versions:
        packed = torch.stack([weight.detach(), bias.detach()], dim=1).float()
        _packed[weight] = versions, packed
    return packed


def triton_layer_norm(x, weight, bias, eps=1e-5):
    n_cols = x.shape[-1]
    x = x.contiguous()
    out = torch.empty_like(x)
    BLOCK = triton.next_power_of_2(n_cols)
    kernel[(x.numel() // n_cols,)](x, pack(weight, bias), out, n_cols, eps, BLOCK=BLOCK)
    return out
