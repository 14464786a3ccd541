"""A softmax in two passes over a row, with a running maximum; its block is a constant."""

import torch
import triton
import triton.language as tl

BLOCK_SIZE = 1024
NUM_STAGES = 2


@triton.jit
def softmax_kernel(x_ptr, out_ptr, stride, n_cols, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    row = tl.program_id(0)
    m = -float("inf")
    s = 0.0
    for start in tl.range(0, n_cols, BLOCK, num_stages=STAGES):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * stride + cols, mask=cols < n_cols, other=-float("inf")).to(
            tl.float32
        )
        new = tl.maximum(m, tl.max(x, axis=0))
        zero = tl.where(new == -float("inf"), 0.0, new)  # all -inf so far: exp(-inf - 0) is 0
        s = s * tl.exp(m - zero) + tl.sum(tl.exp(x - zero), axis=0)
        m = new
    for start in tl.range(0, n_cols, BLOCK, num_stages=STAGES):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * stride + cols, mask=cols < n_cols, other=-float("inf")).to(
            tl.float32
        )
        tl.store(out_ptr + row * stride + cols, tl.exp(x - m) / s, mask=cols < n_cols)


def triton_softmax(x):
    rows = x.contiguous().view(-1, x.shape[-1])
    out = torch.empty_like(rows)
    softmax_kernel[(rows.shape[0],)](
        rows, out, rows.stride(0), rows.shape[1], BLOCK=BLOCK_SIZE, STAGES=NUM_STAGES
    )
    return out.view(x.shape)
