"""Weight and bias are packed by a function with an lru_cache, which compares tensors by identity.

op: layer_norm
status: failed
cause: stale_cache
held_out: yes
round: third
"""

import functools

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, pack_ptr, out_ptr, n_cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / n_cols
    centred = tl.where(mask, x - mean, 0.0)
    var = tl.sum(centred * centred, axis=0) / n_cols
    w = tl.load(pack_ptr + 2 * cols, mask=mask, other=0.0)
    b = tl.load(pack_ptr + 2 * cols + 1, mask=mask, other=0.0)
    tl.store(out_ptr + row * n_cols + cols, centred * tl.rsqrt(var + eps) * w + b, mask=mask)


@functools.lru_cache(maxsize=8)
def packed(weight, bias):
    return torch.stack([weight.float(), bias.float()], dim=1).contiguous()


def triton_layer_norm(x, weight, bias, eps=1e-5):
    rows = x.contiguous().view(-1, x.shape[-1])
    out = torch.empty_like(rows)
    n_rows, n_cols = rows.shape
    kernel[(n_rows,)](
        rows, packed(weight, bias), out, n_cols, eps, BLOCK=triton.next_power_of_2(n_cols)
    )
    return out.view(x.shape)
