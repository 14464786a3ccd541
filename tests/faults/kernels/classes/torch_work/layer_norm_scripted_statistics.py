"""A function of TorchScript computes the statistics of the rows.

op: layer_norm
status: failed
cause: torch_computed
held_out: yes
round: second
"""

import warnings

import torch
import triton
import triton.language as tl

with warnings.catch_warnings():
    warnings.simplefilter("ignore")

    @torch.jit.script
    def statistics(x: torch.Tensor, eps: float):
        wide = x.to(torch.float32)
        mean = torch.mean(wide, dim=-1)
        centred = wide - mean.unsqueeze(-1)
        return mean, torch.rsqrt(torch.mean(centred * centred, dim=-1) + eps)


@triton.jit
def kernel(x_ptr, mean_ptr, scale_ptr, w_ptr, b_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask).to(tl.float32)
    w = tl.load(w_ptr + cols, mask=mask).to(tl.float32)
    b = tl.load(b_ptr + cols, mask=mask).to(tl.float32)
    y = (x - tl.load(mean_ptr + row)) * tl.load(scale_ptr + row) * w + b
    tl.store(out_ptr + row * n_cols + cols, y, mask=mask)


def triton_layer_norm(x, weight, bias, eps=1e-5):
    x, weight, bias = x.contiguous(), weight.contiguous(), bias.contiguous()
    n_cols = x.shape[-1]
    mean, scale = statistics(x, eps)
    out = torch.empty_like(x)
    kernel[(x.numel() // n_cols, triton.cdiv(n_cols, 1024))](
        x, mean.contiguous(), scale.contiguous(), weight, bias, out, n_cols, BLOCK=1024
    )
    return out
