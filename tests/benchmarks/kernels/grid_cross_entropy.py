"""A cross entropy: an online log-sum-exp over tiles of a row, then the mean of the rows."""

import torch
import triton
import triton.language as tl

BLOCK_SIZE = 1024
ROWS = 1
NUM_STAGES = 2


@triton.jit
def loss_kernel(
    x_ptr, target_ptr, loss_ptr, n_rows, n_cols,
    R: tl.constexpr, BLOCK: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    lines = tl.program_id(0) * R + tl.arange(0, R)
    rows = lines[:, None]
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
    target = tl.load(target_ptr + rows, mask=rows < n_rows, other=0)
    hit = tl.load(x_ptr + row_starts + target, mask=rows < n_rows, other=0.0).to(tl.float32)
    tl.store(loss_ptr + rows, m + tl.log(s) - hit, mask=rows < n_rows)


@triton.jit
def mean_kernel(loss_ptr, out_ptr, n_rows, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n_rows, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.load(loss_ptr + at, mask=at < n_rows, other=0.0)
    tl.store(out_ptr, tl.sum(total) / n_rows)


def triton_cross_entropy(logits, target):
    logits = logits.contiguous()
    n_rows, n_cols = logits.shape
    losses = torch.empty(n_rows, device=logits.device, dtype=torch.float32)
    out = torch.empty((), device=logits.device, dtype=logits.dtype)
    loss_kernel[(triton.cdiv(n_rows, ROWS),)](
        logits, target.contiguous(), losses, n_rows, n_cols,
        R=ROWS, BLOCK=BLOCK_SIZE, STAGES=NUM_STAGES, num_warps=4,
    )  # fmt: skip
    mean_kernel[(1,)](losses, out, n_rows, BLOCK=1024, num_warps=4)
    return out
