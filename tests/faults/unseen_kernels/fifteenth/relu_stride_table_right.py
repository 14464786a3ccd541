"""Sizes and strides lie in a table, from which each element's place is decoded; the bits tell NaN from negative numbers, whatever its sign.

op: relu
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    x_ptr, out_ptr, table_ptr, n, DIMS: tl.constexpr, SIGN: tl.constexpr, INF: tl.constexpr, BLOCK: tl.constexpr,
):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    rest = at
    place = at * 0
    for back in tl.static_range(DIMS):
        size = tl.load(table_ptr + 2 * (DIMS - 1 - back))
        stride = tl.load(table_ptr + 2 * (DIMS - 1 - back) + 1)
        place += rest % size * stride
        rest = rest // size
    bits = tl.load(x_ptr + place, mask=at < n, other=0)
    wide = bits.to(tl.int64)
    magnitude = wide & (SIGN - 1)
    positive = (wide & SIGN) == 0
    tl.store(out_ptr + at, tl.where(positive | (magnitude > INF), bits, 0), mask=at < n)


def triton_relu(x):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    n = x.numel()
    if n == 0:
        return out
    rows = [pair for pair in zip(x.shape, x.stride())] or [(1, 0)]
    table = torch.tensor(rows, dtype=torch.int64, device=x.device)
    bits, sign, inf = {
        torch.float32: (torch.int32, 1 << 31, 0x7F800000),
        torch.float16: (torch.int16, 1 << 15, 0x7C00),
        torch.bfloat16: (torch.int16, 1 << 15, 0x7F80),
    }[x.dtype]
    kernel[(triton.cdiv(n, 1024),)](
        x.view(bits), out.view(bits), table, n, DIMS=len(rows), SIGN=sign, INF=inf, BLOCK=1024
    )
    return out
