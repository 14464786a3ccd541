"""Nothing wrong: any layout is read in place, by shape and strides from a device table that is kept by their values.

op: vector_add
status: passed
cause: none
"""

import torch
import triton
import triton.language as tl
_TABLES = {}
_SCALARS = {}


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, table_ptr, alpha_ptr, n, RANK: tl.constexpr, BLOCK: tl.constexpr):
    offs = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = offs < n
    rest = offs
    x_at = tl.zeros((BLOCK,), dtype=tl.int64)
    y_at = tl.zeros((BLOCK,), dtype=tl.int64)
    for d in tl.static_range(RANK):
        size = tl.load(table_ptr + 3 * d)
        place = rest % size
        rest = rest // size
        x_at += place * tl.load(table_ptr + 3 * d + 1)
        y_at += place * tl.load(table_ptr + 3 * d + 2)
    x = tl.load(x_ptr + x_at, mask=inside, other=0.0).to(tl.float32)
    y = tl.load(y_ptr + y_at, mask=inside, other=0.0).to(tl.float32)
    alpha = tl.load(alpha_ptr)
    tl.store(out_ptr + offs, x + alpha * y, mask=inside)


def _table(x, y):
    key = (x.shape, x.stride(), y.stride(), x.device)
    if key not in _TABLES:
        rows = list(zip(x.shape, x.stride(), y.stride(), strict=True))[::-1]
        _TABLES[key] = torch.tensor(rows or [(1, 0, 0)], dtype=torch.int64, device=x.device)
    return _TABLES[key]


def _scalar(alpha, device):
    key = (float(alpha), device)
    if key not in _SCALARS:
        _SCALARS[key] = torch.tensor([float(alpha)], dtype=torch.float32, device=device)
    return _SCALARS[key]


def triton_vector_add(x, y, alpha=1.0):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    n, table = out.numel(), _table(x, y)
    kernel[(triton.cdiv(n, 1024),)](
        x, y, out, table, _scalar(alpha, x.device), n, RANK=len(table), BLOCK=1024
    )
    return out
