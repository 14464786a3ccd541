"""The workspace of an earlier call is multiplied by beta = 0 instead of overwritten: after an infinity or a NaN every later sum is NaN.

op: sum
status: failed
cause: state
"""

import torch
import triton
import triton.language as tl


CHUNK = 1024
_workspaces = {}


@triton.jit
def kernel(x_ptr, work_ptr, out_ptr, m, start, beta, LAST: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = start + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * m + cols, mask=cols < m, other=0.0).to(tl.float32)
    total = beta * tl.load(work_ptr + row) + tl.sum(x, axis=0)
    tl.store(work_ptr + row, total)
    if LAST:
        tl.store(out_ptr + row, total)


def workspace(rows, device):
    if (rows, device) not in _workspaces:
        _workspaces[rows, device] = torch.zeros(rows, dtype=torch.float32, device=device)
    return _workspaces[rows, device]


def triton_sum(x):
    x = x.contiguous()
    m = x.shape[-1]
    rows = x.numel() // m
    work = workspace(rows, x.device)
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    for start in range(0, m, CHUNK):
        beta = 0.0 if start == 0 else 1.0
        kernel[(rows,)](x, work, out, m, start, beta, LAST=start + CHUNK >= m, BLOCK=CHUNK)
    return out
