"""Shape and strides are read from a small tensor, for any number of dimensions.

op: vector_add
status: passed
drawn: no
round: second
"""

import torch
import triton
import triton.language as tl


@triton.jit
def place(table_ptr, index, DIMS: tl.constexpr):
    where_x = tl.zeros_like(index)
    where_y = tl.zeros_like(index)
    for d in tl.static_range(DIMS - 1, -1, -1):
        extent = tl.load(table_ptr + 3 * d)
        digit = index % extent
        index = index // extent
        where_x += digit * tl.load(table_ptr + 3 * d + 1)
        where_y += digit * tl.load(table_ptr + 3 * d + 2)
    return where_x, where_y


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, table_ptr, n, alpha, DIMS: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    where_x, where_y = place(table_ptr, offsets, DIMS)
    x = tl.load(x_ptr + where_x, mask=mask).to(tl.float32)
    y = tl.load(y_ptr + where_y, mask=mask).to(tl.float32)
    tl.store(out_ptr + offsets, x + alpha * y, mask=mask)


def triton_vector_add(x, y, alpha=1.0):
    rows = list(zip(x.shape, x.stride(), y.stride()))
    table = torch.tensor(rows, dtype=torch.int64).to(x.device)
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    n = x.numel()
    kernel[(triton.cdiv(n, 1024),)](x, y, out, table, n, alpha, DIMS=x.dim(), BLOCK=1024)
    return out
