"""An output's memory is used again once nothing refers to the output object: a view of it, which shares the memory, does not count.

op: vector_add
status: failed
cause: state
"""

import weakref

import torch
import triton
import triton.language as tl


_pool = {}


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, alpha, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    y = tl.load(y_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    tl.store(out_ptr + at, x + alpha * y, mask=at < n)


def output(shape, dtype, device):
    """Return memory of an earlier output that the caller has dropped, else new memory."""
    entries = _pool.setdefault((shape, dtype, device), [])
    for entry in entries:
        if entry[1]() is None:
            break
    else:
        entry = [torch.empty(shape, dtype=dtype, device=device), None]
        entries.append(entry)
    handed = entry[0].view(shape)
    entry[1] = weakref.ref(handed)
    return handed


def triton_vector_add(x, y, alpha=1.0):
    x, y = x.contiguous(), y.contiguous()
    out = output(x.shape, x.dtype, x.device)
    kernel[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), float(alpha), BLOCK=1024)
    return out
