"""As many programs as there are SMs; each walks over its blocks.

op: vector_add
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, alpha, n_blocks, BLOCK: tl.constexpr):
    for block in range(tl.program_id(0), n_blocks, tl.num_programs(0)):
        offsets = block * BLOCK + tl.arange(0, BLOCK)
        mask = offsets < n
        x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
        y = tl.load(y_ptr + offsets, mask=mask).to(tl.float32)
        tl.store(out_ptr + offsets, x + alpha * y, mask=mask)


def triton_vector_add(x, y, alpha=1.0):
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty_like(x)
    n_sms = torch.cuda.get_device_properties(x.device).multi_processor_count
    n_blocks = triton.cdiv(out.numel(), 1024)
    kernel[(min(n_sms, n_blocks),)](x, y, out, out.numel(), alpha, n_blocks, BLOCK=1024)
    return out
