"""Two stored sets of sums take turns, and a call clears as many rows of the other set as the call before it used.

op: rms_norm
status: passed
"""

import torch
import triton
import triton.language as tl


ROOM = 64
_states = {}


@triton.jit
def rows_kernel(x_ptr, weight_ptr, out_ptr, m, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    squares = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, m, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * m + at, mask=at < m, other=0.0).to(tl.float32)
        squares += x * x
    factor = 1.0 / tl.sqrt(tl.sum(squares, axis=0) / m + eps)
    for start in range(0, m, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * m + at, mask=at < m, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + at, mask=at < m, other=0.0).to(tl.float32)
        tl.store(out_ptr + row * m + at, x * factor * weight, mask=at < m)


@triton.jit
def add_kernel(x_ptr, sums_ptr, m, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * m + at, mask=at < m, other=0.0).to(tl.float32)
    tl.atomic_add(sums_ptr + row, tl.sum(x * x, axis=0))


@triton.jit
def scale_kernel(x_ptr, weight_ptr, out_ptr, sums_ptr, next_ptr, used, m, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * m + at, mask=at < m, other=0.0).to(tl.float32)
    weight = tl.load(weight_ptr + at, mask=at < m, other=0.0).to(tl.float32)
    factor = 1.0 / tl.sqrt(tl.load(sums_ptr + row) / m + eps)
    tl.store(out_ptr + row * m + at, x * factor * weight, mask=at < m)
    if (tl.program_id(0) == 0) & (tl.program_id(1) == 0):  # the other set is free for the next call
        for line in range(used):
            tl.store(next_ptr + line, 0.0)


def triton_rms_norm(x, weight, eps=1e-05):
    x, weight = x.contiguous(), weight.contiguous()
    m = x.shape[-1]
    rows = x.numel() // m
    out = torch.empty_like(x)
    if m < 8192 or rows > ROOM:
        rows_kernel[(rows,)](x, weight, out, m, eps, BLOCK=1024)
        return out
    # few long rows: several programs a row. Two sets of sums take turns: a call adds into one and
    # clears the other for the next call, which saves a launch.
    if x.device not in _states:
        _states[x.device] = [[torch.zeros(ROOM, dtype=torch.float32, device=x.device), 0] for _ in range(2)]
    _states[x.device].reverse()
    (sums, _), (following, used) = _states[x.device]
    _states[x.device][0][1] = rows
    grid = (rows, triton.cdiv(m, 2048))
    add_kernel[grid](x, sums, m, BLOCK=2048)
    scale_kernel[grid](x, weight, out, sums, following, used, m, eps, BLOCK=2048)
    return out
