"""A softmax in two passes over a row, several rows a program."""

import torch
import triton
import triton.language as tl

BLOCK_SIZE = 1024
ROWS = 1
NUM_STAGES = 2


@triton.jit
def softmax_kernel(
    x_ptr, out_ptr, n_rows, n_cols, R: tl.constexpr, BLOCK: tl.constexpr, STAGES: tl.constexpr
):
    rows = tl.program_id(0) * R + tl.arange(0, R)[:, None]
    row_starts = rows.to(tl.int64) * n_cols
    m = tl.full((R, 1), -float("inf"), tl.float32)
    s = tl.zeros((R, 1), tl.float32)
    for start in tl.range(0, n_cols, BLOCK, num_stages=STAGES):
        cols = start + tl.arange(0, BLOCK)[None, :]
        mask = (rows < n_rows) & (cols < n_cols)
        x = tl.load(x_ptr + row_starts + cols, mask=mask, other=-float("inf")).to(tl.float32)
        new = tl.maximum(m, tl.max(x, axis=1, keep_dims=True))
        safe = tl.where(new == -float("inf"), 0.0, new)
        s = s * tl.exp(m - safe) + tl.sum(tl.exp(x - safe), axis=1, keep_dims=True)
        m = new
    for start in tl.range(0, n_cols, BLOCK, num_stages=STAGES):
        cols = start + tl.arange(0, BLOCK)[None, :]
        mask = (rows < n_rows) & (cols < n_cols)
        x = tl.load(x_ptr + row_starts + cols, mask=mask, other=-float("inf")).to(tl.float32)
        tl.store(out_ptr + row_starts + cols, tl.exp(x - m) / s, mask=mask)


def triton_softmax(x):
    flat = x.contiguous().view(-1, x.shape[-1])
    out = torch.empty_like(flat)
    n_rows, n_cols = flat.shape
    softmax_kernel[(triton.cdiv(n_rows, ROWS),)](
        flat, out, n_rows, n_cols, R=ROWS, BLOCK=BLOCK_SIZE, STAGES=NUM_STAGES, num_warps=4
    )
    return out.view(x.shape)
