"""The workspace of partial sums is kept and read over its whole width: after a call with longer rows, their last parts are added too.

op: sum
status: failed
cause: stale workspace
"""

import torch
import triton
import triton.language as tl
PART = 256
WIDTH = 64  # parts at most
_WORK = {}


@triton.jit
def parts_kernel(x_ptr, work_ptr, n_cols, length, WIDTH: tl.constexpr, BLOCK: tl.constexpr):
    row, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
    first = part * length
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, length, BLOCK):
        place = start + tl.arange(0, BLOCK)
        inside = (place < length) & (first + place < n_cols)
        x = tl.load(x_ptr + row * n_cols + first + place, mask=inside, other=0.0)
        total += x.to(tl.float32)
    tl.store(work_ptr + row * WIDTH + part, tl.sum(total, axis=0))


@triton.jit
def join_kernel(work_ptr, out_ptr, WIDTH: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    tl.store(out_ptr + row, tl.sum(tl.load(work_ptr + row * WIDTH + tl.arange(0, WIDTH)), axis=0))


def _work(n_rows, device):
    """Return zeros [n_rows, WIDTH] or more: parts that a row does not have count as nothing."""
    if device not in _WORK or len(_WORK[device]) < n_rows:
        _WORK[device] = torch.zeros((n_rows, WIDTH), dtype=torch.float32, device=device)
    return _WORK[device]


def triton_sum(x):
    x = x.contiguous()
    n_cols = x.shape[-1]
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    n_rows = max(out.numel(), 1)
    length = max(PART, triton.cdiv(n_cols, WIDTH))
    work = _work(n_rows, x.device)
    parts_kernel[(n_rows, triton.cdiv(n_cols, length))](
        x, work, n_cols, length, WIDTH=WIDTH, BLOCK=PART
    )
    join_kernel[(n_rows,)](work, out, WIDTH=WIDTH)
    return out
