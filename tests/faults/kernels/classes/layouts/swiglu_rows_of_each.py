"""gate and up are read by their own strides: two halves of one projection.

op: swiglu
status: passed
drawn: no
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    gate_ptr, up_ptr, out_ptr, n_cols, gate_row, gate_col, up_row, up_col, BLOCK: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = cols < n_cols
    gate = tl.load(gate_ptr + row * gate_row + cols * gate_col, mask=mask).to(tl.float32)
    up = tl.load(up_ptr + row * up_row + cols * up_col, mask=mask).to(tl.float32)
    tl.store(out_ptr + row * n_cols + cols, gate / (1.0 + tl.exp(-gate)) * up, mask=mask)


def triton_swiglu(gate, up):
    gates, ups = gate.reshape(-1, gate.shape[-1]), up.reshape(-1, up.shape[-1])
    out = torch.empty(gate.shape, dtype=gate.dtype, device=gate.device)
    n_rows, n_cols = gates.shape
    kernel[(n_rows, triton.cdiv(n_cols, 1024))](
        gates, ups, out, n_cols, gates.stride(0), gates.stride(1), ups.stride(0), ups.stride(1),
        BLOCK=1024,
    )
    return out
