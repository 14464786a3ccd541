"""The flat copy of a strided y is reused for the output, but reshape may give a view: then the caller's y is overwritten.

op: vector_add
status: failed
cause: inplace
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    x_ptr, y_ptr, out_ptr, alpha, n_elements, x_step, y_step, out_step, BLOCK: tl.constexpr
):
    places = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = places < n_elements
    x = tl.load(x_ptr + places * x_step, mask=mask).to(tl.float32)
    y = tl.load(y_ptr + places * y_step, mask=mask).to(tl.float32)
    tl.store(out_ptr + places * out_step, x + alpha * y, mask=mask)


def triton_vector_add(x, y, alpha=1.0):
    flat_x, flat_y = x.reshape(-1), y.reshape(-1)
    if y.is_contiguous() or 0 in y.stride():
        out = torch.empty(x.numel(), dtype=x.dtype, device=x.device)
    else:
        out = flat_y  # a copy that nobody else has: no need for a third buffer
    n_elements = x.numel()
    if n_elements:
        kernel[(triton.cdiv(n_elements, 1024),)](
            flat_x, flat_y, out, float(alpha), n_elements,
            flat_x.stride(0), flat_y.stride(0), out.stride(0), BLOCK=1024,
        )
    return out.view(x.shape)
