"""Nothing wrong: the squares are summed as the diagonal of a tile times its own transpose.

op: rms_norm
status: passed
"""

import torch
import triton
import triton.language as tl

SIDE = tl.constexpr(16)


@triton.jit
def _rms_norm(
    x_ptr, w_ptr, out_ptr, n_rows, n_cols, row_stride, col_stride, w_stride, eps, DEPTH: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64) * SIDE + tl.arange(0, SIDE)
    lane = tl.arange(0, DEPTH)
    gram = tl.zeros((SIDE, SIDE), tl.float32)
    for start in range(0, n_cols, DEPTH):
        col = (start + lane).to(tl.int64)
        m = (row < n_rows)[:, None] & (col < n_cols)[None, :]
        at = row[:, None] * row_stride + col[None, :] * col_stride
        x = tl.load(x_ptr + at, mask=m, other=0.0).to(tl.float32)
        gram = tl.dot(x, tl.trans(x), gram, input_precision="ieee")
    # Rows meet their neighbours off the diagonal: selected away, not multiplied by zero.
    own = tl.arange(0, SIDE)[:, None] == tl.arange(0, SIDE)[None, :]
    squares = tl.sum(tl.where(own, gram, 0.0), axis=1)
    scale = tl.rsqrt(squares / n_cols + eps)
    for start in range(0, n_cols, DEPTH):
        col = (start + lane).to(tl.int64)
        m = (row < n_rows)[:, None] & (col < n_cols)[None, :]
        at = row[:, None] * row_stride + col[None, :] * col_stride
        x = tl.load(x_ptr + at, mask=m, other=0.0).to(tl.float32)
        w = tl.load(w_ptr + col * w_stride, mask=col < n_cols, other=0.0).to(tl.float32)
        tl.store(out_ptr + row[:, None] * n_cols + col[None, :], x * scale[:, None] * w[None, :], mask=m)


def triton_rms_norm(x, weight, eps=1e-5):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if out.numel() == 0:
        return out
    plane = x.reshape(-1, x.shape[-1])
    n_rows, n_cols = plane.shape
    _rms_norm[(triton.cdiv(n_rows, 16),)](
        plane, weight, out, n_rows, n_cols, plane.stride(0), plane.stride(1), weight.stride(0), eps,
        DEPTH=64,
    )
    return out
