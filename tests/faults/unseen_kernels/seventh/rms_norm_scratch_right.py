"""Sums of squares go by atomics into a kept buffer that is not cleared before use, but each call leaves it cleared behind.

op: rms_norm
status: passed
"""

import torch
import triton
import triton.language as tl

_scratch = {}


@triton.jit
def squares_kernel(x_ptr, sum_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
    tl.atomic_add(sum_ptr + row, tl.sum(x * x, axis=0))


@triton.jit
def scale_kernel(x_ptr, w_ptr, sum_ptr, out_ptr, n_cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    rstd = tl.rsqrt(tl.load(sum_ptr + row) / n_cols + eps)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = cols < n_cols
        x = tl.load(x_ptr + row * n_cols + cols, mask=mask).to(tl.float32)
        w = tl.load(w_ptr + cols, mask=mask).to(tl.float32)
        tl.store(out_ptr + row * n_cols + cols, x * rstd * w, mask=mask)
    tl.debug_barrier()  # every warp has read it
    tl.store(sum_ptr + row, 0.0)  # no other program reads it: clear for the next call


def triton_rms_norm(x, weight, eps=1e-5):
    x, weight = x.contiguous(), weight.contiguous()
    out = torch.empty_like(x)
    n_cols = x.shape[-1]
    n_rows = x.numel() // n_cols
    # One buffer a stream: calls on one stream follow each other.
    stream = torch.cuda.current_stream(x.device).cuda_stream if x.is_cuda else 0
    key = (x.device, stream)
    if key not in _scratch or len(_scratch[key]) < n_rows:
        _scratch[key] = torch.zeros(triton.next_power_of_2(n_rows), dtype=torch.float32, device=x.device)
    sums = _scratch[key]
    squares_kernel[(n_rows, triton.cdiv(n_cols, 1024))](x, sums, n_cols, BLOCK=1024)
    scale_kernel[(n_rows,)](x, weight, sums, out, n_cols, eps, BLOCK=1024)
    return out
