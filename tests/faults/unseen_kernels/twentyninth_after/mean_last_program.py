"""Right: rows are cut in parts, and whichever program comes last (a counter) adds all parts of its row in a fixed order, however many there are.

op: mean
status: passed
"""

import torch
import triton
import triton.language as tl

PART = 2048


@triton.jit
def kernel(
    x_ptr, parts_ptr, count_ptr, out_ptr, m, parts, n_rows,
    PART: tl.constexpr, BLOCK: tl.constexpr, SLOTS: tl.constexpr,
):
    for job in range(tl.program_id(0), n_rows * parts, tl.num_programs(0)):
        row = tl.cast(job // parts, tl.int64)
        part = tl.cast(parts - 1 - job % parts, tl.int64)  # the short part first
        total = tl.zeros((BLOCK,), tl.float32)
        for start in range(0, PART, BLOCK):
            cols = part * PART + start + tl.arange(0, BLOCK)
            total += tl.load(x_ptr + row * m + cols, mask=cols < m, other=0.0).to(tl.float32)
        tl.store(parts_ptr + row * parts + part, tl.sum(total, axis=0))
        tl.debug_barrier()
        before = tl.atomic_add(count_ptr + row, 1, sem="acq_rel")
        tl.debug_barrier()
        if before == parts - 1:
            sums = tl.zeros((SLOTS,), tl.float32)
            for first in range(0, parts, SLOTS):
                slots = first + tl.arange(0, SLOTS)
                sums += tl.load(
                    parts_ptr + row * parts + slots, mask=slots < parts, other=0.0, volatile=True
                )
            tl.store(out_ptr + row, (tl.sum(sums, axis=0) / m).to(out_ptr.dtype.element_ty))


def triton_mean(x):
    x = x.contiguous()
    m = x.shape[-1]
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    n_rows = out.numel()
    if not n_rows:
        return out
    if not m:
        return out.fill_(float("nan"))
    parts = triton.cdiv(m, PART)
    sums = torch.empty((n_rows, parts), dtype=torch.float32, device=x.device)
    count = torch.zeros(n_rows, dtype=torch.int32, device=x.device)
    kernel[(min(n_rows * parts, 1056),)](
        x, sums, count, out, m, parts, n_rows, PART=PART, BLOCK=512, SLOTS=16
    )
    return out
