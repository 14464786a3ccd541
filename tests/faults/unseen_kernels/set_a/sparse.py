"""A tile of x that is zero throughout is written as zero without a look at y, where infinity and NaN may stand.

op: vector_mul
status: failed
cause: special values
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _mul(x_ptr, y_ptr, out_ptr, n, n_tiles, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    for tile in range(pid, n_tiles, tl.num_programs(0)):
        i = tile * BLOCK + tl.arange(0, BLOCK).to(tl.int64)
        m = i < n
        x = tl.load(x_ptr + i, mask=m, other=0.0)
        live = tl.sum((x != 0).to(tl.int32), axis=0)
        # pruned activations: a dead tile costs one read instead of two
        if live > 0:
            y = tl.load(y_ptr + i, mask=m, other=0.0)
            tl.store(out_ptr + i, x.to(tl.float32) * y.to(tl.float32), mask=m)
        else:
            tl.store(out_ptr + i, x, mask=m)


def triton_vector_mul(x, y):
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    n_tiles = triton.cdiv(n, 128)
    _mul[(min(n_tiles, 264),)](x, y, out, n, n_tiles, BLOCK=128)
    return out
