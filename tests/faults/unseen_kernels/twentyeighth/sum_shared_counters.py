"""Rows count their finished parts in 256 counters, but up to 511 rows are split: rows 256 apart share one, and some are never summed.

op: sum
status: failed
cause: counter_collision
"""

import torch
import triton
import triton.language as tl

COUNTERS = 256  # a power of two: a row's counter is its last bits
FEW_ROWS = 512  # fewer leave multiprocessors idle, with a program a row
LONG = 4096
_counters = {}


@triton.jit
def split_kernel(
    x_ptr, parts_ptr, counters_ptr, out_ptr, n_rows, m, SPLITS: tl.constexpr,
    COUNTERS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) % n_rows
    split = tl.program_id(0) // n_rows
    length = tl.cdiv(m, SPLITS)
    end = tl.minimum((split + 1) * length, m)
    sums = tl.zeros((BLOCK,), tl.float32)
    for start in range(split * length, end, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row.to(tl.int64) * m + cols, mask=cols < end, other=0.0)
        sums += x.to(tl.float32)
    tl.store(parts_ptr + row * SPLITS + split, tl.sum(sums, axis=0))
    tl.debug_barrier()
    counter = counters_ptr + (row & (COUNTERS - 1))
    if tl.atomic_add(counter, 1) == SPLITS - 1:  # the last one adds up, and resets the counter
        parts = tl.load(parts_ptr + row * SPLITS + tl.arange(0, SPLITS), cache_modifier=".cg")
        tl.store(out_ptr + row, tl.sum(parts, axis=0))
        tl.atomic_xchg(counter, 0)


@triton.jit
def rows_kernel(x_ptr, out_ptr, m, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    sums = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row.to(tl.int64) * m + cols, mask=cols < m, other=0.0)
        sums += x.to(tl.float32)
    tl.store(out_ptr + row, tl.sum(sums, axis=0))


def counters(device):
    key = (device, torch.cuda.current_stream(device).cuda_stream if device.type == "cuda" else 0)
    if key not in _counters:
        _counters[key] = torch.zeros(COUNTERS, dtype=torch.int32, device=device)
    return _counters[key]


def triton_sum(x):
    x = x.contiguous()
    m = x.shape[-1]
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    n_rows = x.numel() // m
    if 0 < n_rows < FEW_ROWS and m >= LONG:
        splits = 4 if n_rows >= 128 else 16
        parts = torch.empty((n_rows, splits), dtype=torch.float32, device=x.device)
        split_kernel[(n_rows * splits,)](
            x, parts, counters(x.device), out, n_rows, m,
            SPLITS=splits, COUNTERS=COUNTERS, BLOCK=1024,
        )  # fmt: skip
    elif n_rows:
        rows_kernel[(n_rows,)](x, out, m, BLOCK=min(2048, triton.next_power_of_2(m)))
    return out
