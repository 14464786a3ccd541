"""A class with its workspace launches the kernel; the call is an instance.

op: layer_norm
status: passed
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


class LayerNorm(torch.nn.Module):
    def forward(self, x, weight, bias, eps=1e-5):
        x, weight, bias = x.contiguous(), weight.contiguous(), bias.contiguous()
        out = torch.empty_like(x)
        n_cols = x.shape[-1]
        BLOCK = triton.next_power_of_2(n_cols)
        kernel[(x.numel() // n_cols,)](x, weight, bias, out, n_cols, eps, BLOCK=BLOCK)
        return out


triton_layer_norm = LayerNorm()
