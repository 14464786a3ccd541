"""An up whose leading dimensions all have stride 0 is read as one row, any other one row by row.

op: swiglu
status: passed
drawn: no
round: fourth
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(gate_ptr, up_ptr, out_ptr, n_cols, up_stride, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = cols < n_cols
        gate = tl.load(gate_ptr + row * n_cols + cols, mask=mask).to(tl.float32)
        up = tl.load(up_ptr + row * up_stride + cols, mask=mask).to(tl.float32)
        out = gate / (1.0 + tl.exp2(gate * -1.4426950408889634)) * up
        tl.store(out_ptr + row * n_cols + cols, out, mask=mask)


def triton_swiglu(gate, up):
    n_cols = gate.shape[-1]
    leading = zip(up.shape[:-1], up.stride()[:-1], strict=True)
    is_shared = all(stride == 0 or extent == 1 for extent, stride in leading)
    up = up[(0,) * (up.dim() - 1)] if is_shared else up
    gate = gate.contiguous()
    out = torch.empty_like(gate)
    kernel[(gate.numel() // n_cols,)](
        gate, up.contiguous(), out, n_cols, 0 if is_shared else n_cols, BLOCK=1024
    )
    return out
