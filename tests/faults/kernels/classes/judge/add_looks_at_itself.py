"""The wrapper reads the signature of its own kernel and looks at modules; it patches nothing.

op: vector_add
status: passed
drawn: no
round: second
"""

import inspect
import sys

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, alpha, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    y = tl.load(y_ptr + offsets, mask=mask).to(tl.float32)
    tl.store(out_ptr + offsets, x + alpha * y, mask=mask)


NAMES = [name for name in inspect.signature(kernel.fn).parameters]
kernel.own_note = "elementwise"


def triton_vector_add(x, y, alpha=1.0):
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    values = {"x_ptr": x, "y_ptr": y, "out_ptr": out, "n": n, "alpha": alpha, "BLOCK": 512}
    assert sys.modules.get("torch") is torch
    kernel[(triton.cdiv(n, 512),)](**{name: values[name] for name in NAMES})
    return out
