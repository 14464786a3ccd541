"""The last program of a row joins its sums and resets the counter, which is kept for later calls.

op: mean
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, part_ptr, count_ptr, n_cols, n_parts, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    row, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
    cols = part * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
    tl.store(part_ptr + row * n_parts + part, tl.sum(x, axis=0))
    arrived = tl.atomic_add(count_ptr + row, 1)
    if arrived == n_parts - 1:
        parts = tl.arange(0, PARTS)
        sums = tl.load(part_ptr + row * n_parts + parts, mask=parts < n_parts, other=0.0)
        tl.store(out_ptr + row, tl.sum(sums, axis=0) / n_cols)
        tl.store(count_ptr + row, 0)


COUNTERS = {}


def triton_mean(x):
    x = x.contiguous()
    n_cols = x.shape[-1]
    n_rows, n_parts = x.numel() // n_cols, triton.cdiv(n_cols, 512)
    key = (x.device, n_rows)
    if key not in COUNTERS:
        COUNTERS[key] = torch.zeros(n_rows, dtype=torch.int32, device=x.device)
    parts = torch.empty((n_rows, n_parts), dtype=torch.float32, device=x.device)
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    kernel[(n_rows, n_parts)](
        x, out, parts, COUNTERS[key], n_cols, n_parts,
        PARTS=triton.next_power_of_2(n_parts), BLOCK=512,
    )
    return out
