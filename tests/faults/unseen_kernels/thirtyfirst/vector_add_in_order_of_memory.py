"""Right: tensors of equal dense strides are added in the order of memory, and the output keeps these strides.

op: vector_add
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, alpha, HOW: tl.constexpr, BLOCK: tl.constexpr):
    # Programs walk over the blocks from the end; the first block of each may be past it.
    block = tl.cdiv(n, BLOCK) - 1 - tl.program_id(0)
    while block >= 0:
        at = block.to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + at, mask=at < n, other=0.0).to(tl.float32)
        y = tl.load(y_ptr + at, mask=at < n, other=0.0).to(tl.float32)
        if HOW == "sum":
            out = x + y
        elif HOW == "difference":
            out = x - y
        else:
            out = x + alpha * y  # for alpha = 0 as well: of an infinity it makes NaN
        tl.store(out_ptr + at, out, mask=at < n)
        block -= tl.num_programs(0)


def is_dense(x):
    """Return whether the elements fill one piece of memory, each place once, in any order."""
    expected = 1
    for stride, length in sorted((s, n) for s, n in zip(x.stride(), x.shape) if n > 1):
        if stride != expected:
            return False
        expected *= length
    return True


def triton_vector_add(x, y, alpha=1.0):
    if x.numel() == 0:
        return torch.empty_like(x)
    strides = [[s for s, n in zip(z.stride(), z.shape) if n > 1] for z in (x, y)]
    if strides[0] != strides[1] or not is_dense(x):
        x, y = x.contiguous(), y.contiguous()
    out = torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device=x.device)
    n = x.numel()
    HOW = {1.0: "sum", -1.0: "difference"}.get(float(alpha), "product")
    BLOCK = 1024
    programs = min(triton.cdiv(n, BLOCK), 528)
    kernel[(programs,)](x, y, out, n, float(alpha), HOW=HOW, BLOCK=BLOCK)
    return out
