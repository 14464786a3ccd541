"""Nothing wrong: the program that finishes a row last joins its parts and clears the counter, which is kept between calls.

op: mean
status: passed
cause: none
"""

import torch
import triton
import triton.language as tl
PART = 1024
_COUNTERS = {}


@triton.jit
def kernel(x_ptr, parts_ptr, counter_ptr, out_ptr, n_cols, x_row, x_col, n_parts, BLOCK: tl.constexpr, PARTS: tl.constexpr):
    row, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
    cols = part.to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * x_row + cols * x_col, mask=cols < n_cols, other=0.0).to(tl.float32)
    tl.store(parts_ptr + row * n_parts + part, tl.sum(x, axis=0))
    tl.debug_barrier()
    done = tl.atomic_add(counter_ptr + row, 1, sem="acq_rel")
    if done == n_parts - 1:
        places = tl.arange(0, PARTS)
        parts = tl.load(
            parts_ptr + row * n_parts + places, mask=places < n_parts, other=0.0, volatile=True
        )
        tl.store(out_ptr + row, tl.sum(parts, axis=0) / n_cols)
        tl.store(counter_ptr + row, 0)


def triton_mean(x):
    n_cols = x.shape[-1]
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    rows = x if x.dim() == 2 else x.contiguous().view(-1, n_cols)
    n_rows, n_parts = len(rows), triton.cdiv(n_cols, PART)
    counters = _COUNTERS.get(x.device)
    if counters is None or len(counters) < n_rows:
        counters = torch.zeros(max(n_rows, 4096), dtype=torch.int32, device=x.device)
        _COUNTERS[x.device] = counters
    parts = torch.empty((n_rows, n_parts), dtype=torch.float32, device=x.device)
    kernel[(n_rows, n_parts)](
        rows, parts, counters, out, n_cols, *rows.stride(), n_parts, BLOCK=PART,
        PARTS=triton.next_power_of_2(n_parts),
    )
    return out
