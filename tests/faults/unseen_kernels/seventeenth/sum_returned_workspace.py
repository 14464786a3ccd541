"""The sums of split rows live in a workspace that is brought back to zero by adding minus the total: after one row with an infinity or NaN it is NaN for good.

op: sum
status: failed
cause: state
"""

import torch
import triton
import triton.language as tl


_workspaces = {}


@triton.jit
def kernel(x_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    sums = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, cols, BLOCK):
        at = start + tl.arange(0, BLOCK)
        sums += tl.load(x_ptr + row * cols + at, mask=at < cols, other=0.0).to(tl.float32)
    tl.store(out_ptr + row, tl.sum(sums, axis=0))


@triton.jit
def split_kernel(x_ptr, space_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + at, mask=at < cols, other=0.0).to(tl.float32)
    tl.atomic_add(space_ptr + row, tl.sum(x, axis=0))


@triton.jit
def finish_kernel(space_ptr, out_ptr, rows, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    total = tl.load(space_ptr + at, mask=at < rows, other=0.0)
    tl.store(out_ptr + at, total, mask=at < rows)
    # Zero again for the next call: saves the launch that clears it.
    tl.store(space_ptr + at, total - total, mask=at < rows)


def triton_sum(x):
    x = x.contiguous()
    cols = x.shape[-1]
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    rows = out.numel()
    if rows <= 32 and cols >= 4096:
        if x.device not in _workspaces:
            _workspaces[x.device] = torch.zeros(32, dtype=torch.float32, device=x.device)
        space = _workspaces[x.device]
        split_kernel[(rows, triton.cdiv(cols, 1024))](x, space, cols, BLOCK=1024)
        finish_kernel[(1,)](space, out, rows, BLOCK=32)
    else:
        kernel[(rows,)](x, out, cols, BLOCK=min(1024, triton.next_power_of_2(cols)))
    return out
