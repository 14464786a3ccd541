"""Long rows are split over programs that add into a kept workspace; the last kernel hands it back as
total - total, which is 0 only for finite totals: after a NaN or Inf later calls are NaN.

op: mean
status: failed
cause: call sequence
"""

import torch
import triton
import triton.language as tl

_SPACE = {}


@triton.jit
def _part(x, space, m, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + row * m + cols, mask=cols < m, other=0.0).to(tl.float32)
    tl.atomic_add(space + row, tl.sum(v, 0))


@triton.jit
def _finish(space, out, n, m, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.load(space + rows, mask=rows < n, other=0.0)
    tl.store(out + rows, (total / m).to(out.dtype.element_ty), mask=rows < n)
    tl.store(space + rows, total - total, mask=rows < n)


@triton.jit
def _whole(x, out, m, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    v = tl.load(x + row * m + cols, mask=cols < m, other=0.0).to(tl.float32)
    tl.store(out + row, (tl.sum(v, 0) / m).to(out.dtype.element_ty))


def triton_mean(x):
    x = x.contiguous()
    m = x.shape[-1]
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    n = out.numel()
    if m == 0:
        return out.fill_(float("nan"))
    if n == 0:
        return out
    if m <= 512:
        _whole[(n,)](x, out, m, BLOCK=triton.next_power_of_2(m))
        return out
    space = _SPACE.get(x.device)
    if space is None or len(space) < n:
        space = torch.zeros(max(n, 1024), dtype=torch.float32, device=x.device)
        _SPACE[x.device] = space
    _part[(n, triton.cdiv(m, 1024))](x, space, m, BLOCK=1024)
    _finish[(triton.cdiv(n, 256),)](space, out, n, m, BLOCK=256)
    return out
