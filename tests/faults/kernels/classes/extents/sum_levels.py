"""Each launch adds blocks of a row to fewer numbers, until one number a row is left.

op: sum
status: passed
drawn: no
round: second
"""

import torch
import triton
import triton.language as tl


@triton.jit
def level_kernel(x_ptr, out_ptr, n_cols, n_out, BLOCK: tl.constexpr):
    program = tl.program_id(0).to(tl.int64)
    row, part = program // n_out, program % n_out
    cols = part * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
    tl.store(out_ptr + program, tl.sum(x, axis=0))


def add_level(x, n_rows, n_cols, dtype):
    parts = triton.cdiv(n_cols, 4096)
    wanted = dtype if parts == 1 else torch.float32
    out = torch.empty((n_rows, parts), dtype=wanted, device=x.device)
    level_kernel[(n_rows * parts,)](x, out, n_cols, parts, BLOCK=4096)
    return out if parts == 1 else add_level(out, n_rows, parts, dtype)


def triton_sum(x):
    x = x.contiguous()
    n_cols = x.shape[-1]
    return add_level(x, x.numel() // n_cols, n_cols, x.dtype).view(x.shape[:-1])
