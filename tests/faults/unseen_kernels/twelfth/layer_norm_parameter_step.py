"""Weight and bias are both read by the stride of the weight: wrong where the bias alone is a strided view.

op: layer_norm
status: failed
cause: layout
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, w_ptr, b_ptr, out_ptr, step, n_cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / n_cols
    centred = tl.where(mask, x - mean, 0.0)
    scale = 1.0 / tl.sqrt(tl.sum(centred * centred, axis=0) / n_cols + eps)
    w = tl.load(w_ptr + cols * step, mask=mask, other=0.0).to(tl.float32)
    b = tl.load(b_ptr + cols * step, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + row * n_cols + cols, centred * scale * w + b, mask=mask)


def triton_layer_norm(x, weight, bias, eps=1e-5):
    x = x.contiguous()
    out = torch.empty_like(x)
    n_cols = x.shape[-1]
    kernel[(x.numel() // n_cols,)](
        x, weight, bias, out, weight.stride(0), n_cols, eps, BLOCK=triton.next_power_of_2(n_cols)
    )
    return out
