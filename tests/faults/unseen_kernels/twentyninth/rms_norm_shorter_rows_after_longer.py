"""Sums of parts lie in a saved workspace, and all slots of a row are added: shorter rows meet those of longer ones before.

op: rms_norm
status: failed
cause: workspace
"""

import torch
import triton
import triton.language as tl

BLOCK = 2048
SLOTS = 32  # for each row
workspaces = {}


@triton.jit
def row_kernel(x_ptr, weight_ptr, out_ptr, m, eps, BLOCK: tl.constexpr):
    base = tl.program_id(0).to(tl.int64) * m
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + base + cols, mask=cols < m, other=0.0).to(tl.float32)
    weight = tl.load(weight_ptr + cols, mask=cols < m, other=0.0).to(tl.float32)
    factor = 1.0 / tl.sqrt(tl.sum(x * x, axis=0) / m + eps)
    tl.store(out_ptr + base + cols, x * factor * weight, mask=cols < m)


@triton.jit
def sum_kernel(x_ptr, sums_ptr, m, length, BLOCK: tl.constexpr, SLOTS: tl.constexpr):
    row, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(part * length, tl.minimum(m, part * length + length), BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * m + cols, mask=cols < m, other=0.0).to(tl.float32)
        total += x * x
    tl.store(sums_ptr + row * SLOTS + part, tl.sum(total, axis=0))


@triton.jit
def write_kernel(
    x_ptr, weight_ptr, out_ptr, sums_ptr, m, length, eps, BLOCK: tl.constexpr, SLOTS: tl.constexpr
):
    row, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
    # Slots without a part are zero: no mask.
    total = tl.sum(tl.load(sums_ptr + row * SLOTS + tl.arange(0, SLOTS)), axis=0)
    factor = 1.0 / tl.sqrt(total / m + eps)
    for start in range(part * length, tl.minimum(m, part * length + length), BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * m + cols, mask=cols < m, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + cols, mask=cols < m, other=0.0).to(tl.float32)
        tl.store(out_ptr + row * m + cols, x * factor * weight, mask=cols < m)


def workspace(rows, device):
    saved = workspaces.get(device)
    if saved is None or len(saved) < rows:
        saved = workspaces[device] = torch.zeros((rows, SLOTS), dtype=torch.float32, device=device)
    return saved


def triton_rms_norm(x, weight, eps=1e-05):
    x, weight = x.contiguous(), weight.contiguous()
    out = torch.empty_like(x)
    if not x.numel():
        return out
    m = x.shape[-1]
    rows = x.numel() // m
    if m <= BLOCK:
        row_kernel[(rows,)](x, weight, out, m, eps, BLOCK=triton.next_power_of_2(m))
        return out
    length = triton.cdiv(triton.cdiv(m, SLOTS), BLOCK) * BLOCK
    parts = triton.cdiv(m, length)
    sums = workspace(rows, x.device)
    sum_kernel[(rows, parts)](x, sums, m, length, BLOCK=BLOCK, SLOTS=SLOTS)
    write_kernel[(rows, parts)](x, weight, out, sums, m, length, eps, BLOCK=BLOCK, SLOTS=SLOTS)
    return out
