"""Right: dense tensors of equal strides are walked in the order of their memory; the last block is moved back over the one before it.

op: vector_add
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n_elements, alpha, WHOLE: tl.constexpr, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    program, programs = tl.program_id(0), tl.num_programs(0)
    for i in range(0, tl.cdiv(tl.cdiv(n_elements, BLOCK) - program, programs)):
        start = (program + i * programs).to(tl.int64) * BLOCK
        if WHOLE:  # no mask: elements that two blocks have get the same value twice
            start = tl.minimum(start, n_elements - BLOCK)
            x = tl.load(x_ptr + start + lanes).to(tl.float32)
            y = tl.load(y_ptr + start + lanes).to(tl.float32)
            tl.store(out_ptr + start + lanes, x + alpha * y)
        else:
            mask = lanes < n_elements
            x = tl.load(x_ptr + lanes, mask=mask).to(tl.float32)
            y = tl.load(y_ptr + lanes, mask=mask).to(tl.float32)
            tl.store(out_ptr + lanes, x + alpha * y, mask=mask)


def triton_vector_add(x, y, alpha=1.0):
    out = torch.empty_like(x)  # has the strides of x if x has neither gaps nor overlaps
    if not (out.stride() == x.stride() == y.stride()):
        x, y = x.contiguous(), y.contiguous()
        out = torch.empty_like(x)
    n_elements = x.numel()
    if n_elements:
        programs = min(triton.cdiv(n_elements, 1024), 4)
        add_kernel[(programs,)](
            x, y, out, n_elements, float(alpha), WHOLE=n_elements >= 1024, BLOCK=1024
        )
    return out
