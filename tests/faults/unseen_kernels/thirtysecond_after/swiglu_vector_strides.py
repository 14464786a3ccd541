"""Row strides are counted in vectors of 16 bytes where the width and the addresses allow, but a stride may be no multiple of it.

op: swiglu
status: failed
cause: strides
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    gate_ptr, up_ptr, out_ptr, n_cols, gate_stride, up_stride, UNIT: tl.constexpr, BLOCK: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = cols < n_cols
    # Times UNIT in here: the compiler sees that each row starts at a vector, and loads vectors.
    gate = tl.load(gate_ptr + row * gate_stride * UNIT + cols, mask=mask).to(tl.float32)
    up = tl.load(up_ptr + row * up_stride * UNIT + cols, mask=mask).to(tl.float32)
    tl.store(out_ptr + row * n_cols + cols, gate * tl.sigmoid(gate) * up, mask=mask)


def rows_of(x):
    """x as rows that are contiguous within; a view where it can be."""
    if x.dim() != 2:
        x = x.reshape(-1, x.shape[-1])
    return x if x.stride(1) == 1 else x.contiguous()


def triton_swiglu(gate, up):
    out = torch.empty(gate.shape, dtype=gate.dtype, device=gate.device)
    if not out.numel():
        return out
    gate, up = rows_of(gate), rows_of(up)
    n_rows, n_cols = gate.shape
    width = 16 // gate.element_size()
    vectors = n_cols % width == 0 and gate.data_ptr() % 16 == 0 and up.data_ptr() % 16 == 0
    unit = width if vectors else 1
    BLOCK = min(1024, triton.next_power_of_2(n_cols))
    kernel[(n_rows, triton.cdiv(n_cols, BLOCK))](
        gate, up, out, n_cols, gate.stride(0) // unit, up.stride(0) // unit, UNIT=unit, BLOCK=BLOCK
    )
    return out
