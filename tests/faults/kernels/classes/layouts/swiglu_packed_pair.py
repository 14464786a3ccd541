"""Two inputs with equal strides are taken for the halves of one packed row, whose columns lie side by side.

op: swiglu
status: failed
cause: wrong_stride
round: third
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(gate_ptr, up_ptr, out_ptr, n_cols, row_stride, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = cols < n_cols
        gate = tl.load(gate_ptr + row * row_stride + cols, mask=mask).to(tl.float32)
        up = tl.load(up_ptr + row * row_stride + cols, mask=mask).to(tl.float32)
        tl.store(out_ptr + row * n_cols + cols, gate / (1.0 + tl.exp(-gate)) * up, mask=mask)


def triton_swiglu(gate, up):
    n_cols = gate.shape[-1]
    out = torch.empty(gate.shape, dtype=gate.dtype, device=gate.device)
    packed = gate.dim() == 2 and gate.stride() == up.stride()
    if not packed:
        gate, up = (t.contiguous().view(-1, n_cols) for t in (gate, up))
    kernel[(out.numel() // n_cols,)](gate, up, out, n_cols, gate.stride(0), BLOCK=512)
    return out
