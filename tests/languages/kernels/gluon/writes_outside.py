"""Gluon: it writes one element behind its output.

op: relu
status: out_of_bounds
language: triton
"""

import torch
import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@gluon.jit
def relu_kernel(x_ptr, out_ptr, n_elements, BLOCK_SIZE: gl.constexpr, num_warps: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [num_warps], [0])
    offsets = gl.program_id(0) * BLOCK_SIZE + gl.arange(0, BLOCK_SIZE, layout=layout)
    mask = offsets < n_elements
    x = gl.load(x_ptr + offsets, mask=mask)
    gl.store(out_ptr + offsets, gl.where(x < 0, gl.full([BLOCK_SIZE], 0, x.dtype, layout), x), mask=offsets < n_elements + 1)


def triton_relu(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    relu_kernel[(triton.cdiv(n, 1024),)](x, out, n, BLOCK_SIZE=1024, num_warps=4)
    return out
