"""The row of an element is its place times 1 / columns in float32, rounded down.

op: rms_norm
status: failed
cause: wrong_stride
held_out: yes
round: third
"""

import torch
import triton
import triton.language as tl


@triton.jit
def square_kernel(x_ptr, scale_ptr, n_cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    squares = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
        squares += x * x
    tl.store(scale_ptr + row, tl.rsqrt(tl.sum(squares, axis=0) / n_cols + eps))


@triton.jit
def scale_kernel(x_ptr, scale_ptr, w_ptr, out_ptr, n, n_cols, share, BLOCK: tl.constexpr):
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = places < n
    row = (places.to(tl.float32) * share).to(tl.int32)
    x = tl.load(x_ptr + places, mask=mask, other=0.0).to(tl.float32)
    scale = tl.load(scale_ptr + row, mask=mask, other=0.0)
    w = tl.load(w_ptr + places % n_cols, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + places, x * scale * w, mask=mask)


def triton_rms_norm(x, weight, eps=1e-5):
    rows, weight = x.contiguous().view(-1, x.shape[-1]), weight.contiguous()
    out = torch.empty_like(rows)
    n_rows, n_cols = rows.shape
    scale = torch.empty(n_rows, dtype=torch.float32, device=x.device)
    square_kernel[(n_rows,)](rows, scale, n_cols, eps, BLOCK=512)
    scale_kernel[(triton.cdiv(out.numel(), 1024),)](
        rows, scale, weight, out, out.numel(), n_cols, 1.0 / n_cols, BLOCK=1024
    )
    return out.view(x.shape)
