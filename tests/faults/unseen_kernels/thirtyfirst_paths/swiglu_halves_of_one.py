"""Halves of one matrix are read in place from the lower address: where up is the first half, gate and up change places.

op: swiglu
status: failed
cause: layout
"""

import torch
import triton
import triton.language as tl


@triton.jit
def gated(gate, up):
    g = gate.to(tl.float32)
    return g / (1.0 + tl.exp2(-1.4426950408889634 * g)) * up.to(tl.float32)


@triton.jit
def flat(gate_ptr, up_ptr, out_ptr, size, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = at < size
    gate = tl.load(gate_ptr + at, mask=mask, other=0.0)
    up = tl.load(up_ptr + at, mask=mask, other=0.0)
    tl.store(out_ptr + at, gated(gate, up), mask=mask)


@triton.jit
def fused(both_ptr, out_ptr, n_rows, half, ROWS: tl.constexpr, COLS: tl.constexpr):
    # One base pointer for [rows, 2 * half]: the product before it writes both halves together.
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    cols = tl.program_id(1) * COLS + tl.arange(0, COLS)
    mask = (rows < n_rows)[:, None] & (cols < half)[None, :]
    at = rows[:, None] * (2 * half) + cols[None, :]
    gate = tl.load(both_ptr + at, mask=mask, other=0.0)
    up = tl.load(both_ptr + at + half, mask=mask, other=0.0)
    tl.store(out_ptr + rows[:, None] * half + cols[None, :], gated(gate, up), mask=mask)


def are_halves(gate, up):
    """Return whether the two are the halves of the rows of one matrix, and rows are whole sectors."""
    if gate.dim() != 2 or gate.stride() != up.stride():
        return False
    half = gate.shape[1]
    apart = abs(up.data_ptr() - gate.data_ptr())
    return gate.stride() == (2 * half, 1) and apart == half * gate.element_size() and apart % 32 == 0


def triton_swiglu(gate, up):
    out = torch.empty(gate.shape, dtype=gate.dtype, device=gate.device)
    if out.numel() == 0:
        return out
    if are_halves(gate, up):
        n_rows, half = gate.shape
        both = gate if gate.data_ptr() < up.data_ptr() else up
        cols = min(512, triton.next_power_of_2(half))
        rows = max(1, 2048 // cols)
        grid = (triton.cdiv(n_rows, rows), triton.cdiv(half, cols))
        fused[grid](both, out, n_rows, half, ROWS=rows, COLS=cols)
    else:
        gate, up = gate.contiguous(), up.contiguous()
        block = 1024 if out.numel() < 2**20 else 2048
        flat[(triton.cdiv(out.numel(), block),)](gate, up, out, out.numel(), BLOCK=block)
    return out
