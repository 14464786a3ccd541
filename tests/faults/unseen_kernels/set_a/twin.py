"""Both operands at one address are taken for one tensor and loaded once, but a transposed view starts there too.

op: vector_add
status: failed
cause: aliased views
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _add(x_ptr, y_ptr, out_ptr, n, alpha, TWIN: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    x = tl.load(x_ptr + i, mask=m, other=0.0).to(tl.float32)
    if TWIN:
        y = x
    else:
        y = tl.load(y_ptr + i, mask=m, other=0.0).to(tl.float32)
    tl.store(out_ptr + i, tl.fma(y, alpha, x), mask=m)


def triton_vector_add(x, y, alpha=1.0):
    twin = x.data_ptr() == y.data_ptr()  # add(x, x, alpha): one read instead of two
    x = x.contiguous()
    y = x if twin else y.contiguous()
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    n = out.numel()
    block = 1024 if n >= 1 << 16 else 256
    _add[(triton.cdiv(n, block),)](x, y, out, n, float(alpha), TWIN=twin, BLOCK=block)
    return out
