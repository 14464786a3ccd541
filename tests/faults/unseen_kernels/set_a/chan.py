"""Nothing wrong: spans of a row are merged two by two as Chan does, then a flat second kernel finds each element's row by division.

op: layer_norm
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _merge(n_a, mean_a, m2_a, n_b, mean_b, m2_b):
    n = n_a + n_b
    gap = mean_b - mean_a
    share = n_b / n
    return n, mean_a + gap * share, m2_a + m2_b + gap * (gap * (n_a * share))


@triton.jit
def _statistics(x_ptr, mean_ptr, scale_ptr, n_cols, row_stride, col_stride, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    lane = tl.arange(0, BLOCK)
    n = tl.program_id(0).to(tl.float32) * 0.0
    mean = n
    m2 = n
    for start in range(0, n_cols, BLOCK):
        col = (start + lane).to(tl.int64)
        m = start + lane < n_cols
        x = tl.load(x_ptr + row * row_stride + col * col_stride, mask=m, other=0.0).to(tl.float32)
        here = tl.sum(m.to(tl.float32), axis=0)
        own = tl.sum(x, axis=0) / here
        d = tl.where(m, x - own, 0.0)
        n, mean, m2 = _merge(n, mean, m2, here, own, tl.sum(d * d, axis=0))
    tl.store(mean_ptr + row, mean)
    tl.store(scale_ptr + row, 1.0 / tl.sqrt(m2 / n + eps))


@triton.jit
def _apply(
    x_ptr, mean_ptr, scale_ptr, w_ptr, b_ptr, out_ptr, n, n_cols, row_stride, col_stride,
    w_stride, b_stride, BLOCK: tl.constexpr,
):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    row = i // n_cols
    col = i - row * n_cols
    x = tl.load(x_ptr + row * row_stride + col * col_stride, mask=m, other=0.0).to(tl.float32)
    mean = tl.load(mean_ptr + row, mask=m, other=0.0)
    scale = tl.load(scale_ptr + row, mask=m, other=0.0)
    w = tl.load(w_ptr + col * w_stride, mask=m, other=0.0).to(tl.float32)
    b = tl.load(b_ptr + col * b_stride, mask=m, other=0.0).to(tl.float32)
    tl.store(out_ptr + i, (x - mean) * scale * w + b, mask=m)


def triton_layer_norm(x, weight, bias, eps=1e-5):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    n = out.numel()
    if n == 0:
        return out
    plane = x.reshape(-1, x.shape[-1])
    n_rows, n_cols = plane.shape
    mean, scale = torch.empty((2, n_rows), dtype=torch.float32, device=x.device)
    _statistics[(n_rows,)](
        plane, mean, scale, n_cols, plane.stride(0), plane.stride(1), eps,
        BLOCK=min(1024, triton.next_power_of_2(n_cols)),
    )
    _apply[(triton.cdiv(n, 1024),)](
        plane, mean, scale, weight, bias, out, n, n_cols, plane.stride(0), plane.stride(1),
        weight.stride(0), bias.stride(0), BLOCK=1024,
    )
    return out
