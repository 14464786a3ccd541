"""Nothing wrong: two-dimensional blocks by the strides of both inputs, with the sigmoid of the sign that can't overflow.

op: swiglu
status: passed
cause: none
"""

import torch
import triton
import triton.language as tl

@triton.jit
def silu(x):
    e = tl.exp(-tl.abs(x))
    return x * tl.where(x < 0, e, 1.0) / (1.0 + e)


@triton.jit
def kernel(
    gate_ptr, up_ptr, out_ptr, n_rows, n_cols, gate_row, gate_col, up_row, up_col,
    BR: tl.constexpr, BC: tl.constexpr,
):
    tile = tl.program_id(0)
    across = tl.cdiv(n_cols, BC)
    rows = (tile // across * BR + tl.arange(0, BR)).to(tl.int64)[:, None]
    cols = (tile % across * BC + tl.arange(0, BC)).to(tl.int64)[None, :]
    inside = (rows < n_rows) & (cols < n_cols)
    gate = tl.load(gate_ptr + rows * gate_row + cols * gate_col, mask=inside, other=0.0)
    up = tl.load(up_ptr + rows * up_row + cols * up_col, mask=inside, other=0.0)
    y = silu(gate.to(tl.float32)) * up.to(tl.float32)
    tl.store(out_ptr + rows * n_cols + cols, y, mask=inside)


def _as_matrix(x):
    if x.dim() == 2:
        return x
    return x.contiguous().view(-1, x.shape[-1] if x.dim() else 1)


def triton_swiglu(gate, up):
    out = torch.empty(gate.shape, dtype=gate.dtype, device=gate.device)
    g, u = _as_matrix(gate), _as_matrix(up)
    n_rows, n_cols = g.shape
    br, bc = (64, 16) if g.stride(0) == 1 and n_rows > 1 else (4, 256)
    grid = (triton.cdiv(n_rows, br) * triton.cdiv(n_cols, bc),)
    kernel[grid](g, u, out, n_rows, n_cols, *g.stride(), *u.stride(), BR=br, BC=bc)
    return out
