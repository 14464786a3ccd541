"""Nothing wrong: parts of a row are counted in a kept counter, which the last one resets.

op: sum
status: passed
"""

import torch
import triton
import triton.language as tl

MOST = 32
_counters = {}


@triton.jit
def split_sum_kernel(
    x_ptr, part_ptr, count_ptr, out_ptr, n_cols, per_part, n_parts,
    MOST: tl.constexpr, BLOCK: tl.constexpr,
):
    row, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
    first = part * per_part
    last = tl.minimum(first + per_part, n_cols)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(first, last, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        acc += tl.load(x_ptr + row * n_cols + cols, mask=cols < last, other=0.0).to(tl.float32)
    tl.store(part_ptr + row * MOST + part, tl.sum(acc, axis=0))
    tl.debug_barrier()
    arrived = tl.atomic_add(count_ptr + row, 1, sem="acq_rel") + 1
    if arrived == n_parts:
        parts = tl.arange(0, MOST)
        sums = tl.load(part_ptr + row * MOST + parts, mask=parts < n_parts, other=0.0)
        tl.store(out_ptr + row, tl.sum(sums, axis=0))
        tl.store(count_ptr + row, 0)  # as the next call expects it


def triton_sum(x):
    rows = x.contiguous().view(-1, x.shape[-1])
    n_rows, n_cols = rows.shape
    out = torch.empty(n_rows, dtype=x.dtype, device=x.device)
    n_parts = min(MOST, triton.cdiv(n_cols, 1024))
    per_part = triton.cdiv(n_cols, n_parts)
    parts = torch.empty((n_rows, MOST), dtype=torch.float32, device=x.device)
    counts = _counters.get(x.device)
    if counts is None or counts.numel() < n_rows:
        size = max(1024, triton.next_power_of_2(n_rows))
        counts = _counters[x.device] = torch.zeros(size, dtype=torch.int32, device=x.device)
    split_sum_kernel[(n_rows, n_parts)](
        rows, parts, counts, out, n_cols, per_part, n_parts, MOST=MOST, BLOCK=512
    )
    return out.view(x.shape[:-1])
