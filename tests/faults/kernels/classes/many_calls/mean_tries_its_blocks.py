"""The first call of a shape tries three blocks with atomics on one output, which adds up.

op: mean
status: failed
cause: call_count
round: third
"""

import time

import torch
import triton
import triton.language as tl

BEST = {}


@triton.jit
def kernel(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
    tl.atomic_add(out_ptr + row, tl.sum(x, axis=0) / n_cols)


def launch(rows, out, block):
    n_rows, n_cols = rows.shape
    kernel[(n_rows, triton.cdiv(n_cols, block))](rows, out, n_cols, BLOCK=block)


def measure(rows, out, block):
    start = time.perf_counter()
    launch(rows, out, block)
    return time.perf_counter() - start


def triton_mean(x):
    rows = x.contiguous().view(-1, x.shape[-1])
    out = torch.zeros(x.shape[:-1], dtype=torch.float32, device=x.device)
    key = rows.shape[1]
    if key not in BEST and rows.shape[0] > 500:
        BEST[key] = min((256, 512, 1024), key=lambda block: measure(rows, out, block))
    launch(rows, out, BEST.get(key, 512))
    return out.to(x.dtype)
