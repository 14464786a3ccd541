"""A module joins weight and bias in one tensor, and reads sizes on the host.

op: layer_norm
status: passed
"""

import torch
import triton
import triton.language as tl



@triton.jit
def norm(x_ptr, wb_ptr, out_ptr, n_cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / n_cols
    centred = tl.where(mask, x - mean, 0.0)
    scale = 1 / tl.sqrt(tl.sum(centred * centred, axis=0) / n_cols + eps)
    w = tl.load(wb_ptr + cols, mask=mask)
    b = tl.load(wb_ptr + n_cols + cols, mask=mask)
    tl.store(out_ptr + row * n_cols + cols, centred * scale * w + b, mask=mask)


class Norm(torch.nn.Module):
    def forward(self, x, weight, bias, eps):
        rows = x.reshape(-1, x.shape[-1]).contiguous()
        both = torch.stack([weight, bias]).to(torch.float32)
        n_rows, n_cols = torch.tensor(rows.shape).tolist()
        out = torch.full_like(rows, 7)
        norm[(n_rows,)](rows, both, out, n_cols, eps, BLOCK=triton.next_power_of_2(n_cols))
        return out.reshape(x.shape)


def triton_layer_norm(x, weight, bias, eps=1e-5):
    return Norm()(x, weight, bias, eps)
