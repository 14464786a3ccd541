"""The kernel works in place as if reshape copied every x that is not contiguous: a view with gaps between its rows
needs no copy, so that the caller's own tensor is overwritten.

op: softmax
status: failed
cause: aliasing
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, m, x_step, out_step, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * x_step
    out_ptr += row * out_step
    top = -float("inf")
    total = 0.0
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + cols, mask=cols < m, other=-float("inf")).to(tl.float32)
        new_top = tl.maximum(top, tl.max(x, axis=0), propagate_nan=tl.PropagateNan.ALL)
        safe = tl.where(new_top == -float("inf"), 0.0, new_top)
        total = total * tl.exp(top - safe) + tl.sum(tl.exp(x - safe), axis=0)
        top = new_top
    for start in range(0, m, BLOCK):  # each element is read before it is written: in place is fine
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + cols, mask=cols < m, other=-float("inf")).to(tl.float32)
        tl.store(out_ptr + cols, tl.exp(x - top) / total, mask=cols < m)


def triton_softmax(x):
    m = x.shape[-1]
    if not x.numel():
        return torch.empty(x.shape, dtype=x.dtype, device=x.device)
    rows = x.reshape(-1, m)
    if rows.stride(-1) != 1:
        rows = rows.contiguous()
    # A tensor that is not contiguous was copied above. The copy is ours: it can take the result.
    out = torch.empty_like(rows) if x.is_contiguous() else rows
    BLOCK = min(2048, triton.next_power_of_2(m))
    kernel[(rows.shape[0],)](rows, out, m, rows.stride(0), out.stride(0), BLOCK=BLOCK)
    return out.view(x.shape)
