"""torch.library.triton_op wraps the kernel.

op: mean
status: passed
"""

import torch
import triton
import triton.language as tl



@triton.jit
def kernel(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        acc += tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
    tl.store(out_ptr + row, tl.sum(acc, axis=0) / n_cols)


@torch.library.triton_op("computed_by::right_mean", mutates_args={})
def row_mean(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty(x.shape[0], dtype=x.dtype, device=x.device)
    kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=512)
    return out


def triton_mean(x):
    return row_mean(x.reshape(-1, x.shape[-1]).contiguous()).view(x.shape[:-1])
