"""Wide rows in whole blocks; the columns after the last whole block are left out.

op: swiglu
status: failed
cause: truncated_extent
held_out: yes
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(gate_ptr, up_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = cols < n_cols
    gate = tl.load(gate_ptr + row * n_cols + cols, mask=mask).to(tl.float32)
    up = tl.load(up_ptr + row * n_cols + cols, mask=mask).to(tl.float32)
    tl.store(out_ptr + row * n_cols + cols, gate / (1.0 + tl.exp(-gate)) * up, mask=mask)


def triton_swiglu(gate, up):
    gate, up = gate.contiguous(), up.contiguous()
    out = torch.empty_like(gate)
    n_cols = gate.shape[-1]
    n_rows = gate.numel() // n_cols
    BLOCK = min(1024, triton.next_power_of_2(n_cols))
    blocks = n_cols // BLOCK or 1
    kernel[(n_rows, blocks)](gate, up, out, n_cols, BLOCK=BLOCK)
    return out
