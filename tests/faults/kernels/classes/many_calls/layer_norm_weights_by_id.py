"""weight and bias are converted once for each object: later changes in place are not seen.

op: layer_norm
status: failed
cause: stale_cache
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, w_ptr, b_ptr, out_ptr, n_cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / n_cols
    centred = tl.where(mask, x - mean, 0.0)
    scale = tl.rsqrt(tl.sum(centred * centred, axis=0) / n_cols + eps)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    b = tl.load(b_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + row * n_cols + cols, centred * scale * w + b, mask=mask)


CONVERTED = {}


def converted(tensor):
    if id(tensor) not in CONVERTED:
        CONVERTED[id(tensor)] = tensor.float().clone()
    return CONVERTED[id(tensor)]


def triton_layer_norm(x, weight, bias, eps=1e-5):
    x = x.contiguous()
    out = torch.empty_like(x)
    n_cols = x.shape[-1]
    BLOCK = triton.next_power_of_2(n_cols)
    kernel[(x.numel() // n_cols,)](
        x, converted(weight), converted(bias), out, n_cols, eps, BLOCK=BLOCK
    )
    return out
