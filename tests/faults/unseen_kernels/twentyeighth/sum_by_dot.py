"""Right: a matrix product adds, sixteen rows times ones; half types in tf32, which holds each of their values.

op: sum
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def sum_kernel(x_ptr, out_ptr, n_rows, m, PRECISION: tl.constexpr, BLOCK: tl.constexpr):
    rows = tl.program_id(0).to(tl.int64) * 16 + tl.arange(0, 16)
    inside = rows < n_rows
    acc = tl.zeros((16, 16), tl.float32)
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = inside[:, None] & (cols < m)[None, :]
        x = tl.load(x_ptr + rows[:, None] * m + cols[None, :], mask=mask, other=0.0)
        ones = tl.full((BLOCK, 16), 1.0, tl.float32)
        # The products are the values themselves: tf32 has the 10 bits of a float16 and 7 of a
        # bfloat16, and the exponents of a float32.
        acc = tl.dot(x.to(tl.float32), ones, acc, input_precision=PRECISION)
    first = tl.arange(0, 16)[None, :] == 0
    tl.store(out_ptr + rows, tl.sum(tl.where(first, acc, 0.0), axis=1), mask=inside)


def triton_sum(x):
    x = x.contiguous()
    m = x.shape[-1]
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    n_rows = x.numel() // m
    if n_rows:
        block = max(16, min(128, triton.next_power_of_2(m)))
        precision = "ieee" if x.dtype == torch.float32 else "tf32"
        sum_kernel[(triton.cdiv(n_rows, 16),)](
            x, out, n_rows, m, PRECISION=precision, BLOCK=block
        )
    return out
