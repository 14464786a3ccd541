"""The last part of a long row is found by a counter modulo the parts, never reset: a call with other parts finds another.

op: rms_norm
status: failed
cause: counter
"""

import torch
import triton
import triton.language as tl

FEW = 32  # rows: fewer programs than multiprocessors
counters = {}  # by device: one for each row


@triton.jit
def parts_kernel(
    x_ptr, sums_ptr, rstd_ptr, counter_ptr, m, eps,
    PARTS: tl.constexpr, PLACES: tl.constexpr, LENGTH: tl.constexpr,
):
    row, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
    cols = part * LENGTH + tl.arange(0, LENGTH)
    x = tl.load(x_ptr + row * m + cols, mask=cols < m, other=0.0).to(tl.float32)
    tl.store(sums_ptr + row * PARTS + part, tl.sum(x * x, axis=0))
    tl.debug_barrier()
    ticket = tl.atomic_add(counter_ptr + row, 1, sem="acq_rel")
    if ticket % PARTS == PARTS - 1:  # all others are done; the counter needs no reset
        places = tl.arange(0, PLACES)
        sums = tl.load(
            sums_ptr + row * PARTS + places, mask=places < PARTS, other=0.0, cache_modifier=".cg"
        )
        tl.store(rstd_ptr + row, 1.0 / tl.sqrt(tl.sum(sums, axis=0) / m + eps))


@triton.jit
def scale_kernel(x_ptr, weight_ptr, rstd_ptr, out_ptr, m, LENGTH: tl.constexpr):
    row, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
    cols = part * LENGTH + tl.arange(0, LENGTH)
    x = tl.load(x_ptr + row * m + cols, mask=cols < m, other=0.0).to(tl.float32)
    weight = tl.load(weight_ptr + cols, mask=cols < m, other=0.0).to(tl.float32)
    tl.store(out_ptr + row * m + cols, x * tl.load(rstd_ptr + row) * weight, mask=cols < m)


@triton.jit
def row_kernel(x_ptr, weight_ptr, out_ptr, m, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    squares = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * m + cols, mask=cols < m, other=0.0).to(tl.float32)
        squares += x * x
    rstd = 1.0 / tl.sqrt(tl.sum(squares, axis=0) / m + eps)
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * m + cols, mask=cols < m, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + cols, mask=cols < m, other=0.0).to(tl.float32)
        tl.store(out_ptr + row * m + cols, x * rstd * weight, mask=cols < m)


def triton_rms_norm(x, weight, eps=1e-5):
    m = x.shape[-1]
    x, weight = x.contiguous(), weight.contiguous()
    out = torch.empty_like(x)
    if not out.numel():
        return out
    rows = x.numel() // m
    if rows > FEW or m < 8192:
        row_kernel[(rows,)](
            x, weight, out, m, float(eps), BLOCK=min(4096, triton.next_power_of_2(m))
        )
        return out
    if x.device not in counters:
        counters[x.device] = torch.zeros(FEW, dtype=torch.int32, device=x.device)
    LENGTH = 4096
    parts = triton.cdiv(m, LENGTH)
    sums = torch.empty((rows, parts), dtype=torch.float32, device=x.device)
    rstd = torch.empty(rows, dtype=torch.float32, device=x.device)
    parts_kernel[(rows, parts)](
        x, sums, rstd, counters[x.device], m, float(eps),
        PARTS=parts, PLACES=triton.next_power_of_2(parts), LENGTH=LENGTH,
    )
    scale_kernel[(rows, parts)](x, weight, rstd, out, m, LENGTH=LENGTH)
    return out
