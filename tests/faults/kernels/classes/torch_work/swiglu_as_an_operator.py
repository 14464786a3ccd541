"""The launch is the implementation of an operator of torch.library, with a fake one beside it.

op: swiglu
status: passed
drawn: no
round: second
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(gate_ptr, up_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    gate = tl.load(gate_ptr + offsets, mask=mask).to(tl.float32)
    up = tl.load(up_ptr + offsets, mask=mask).to(tl.float32)
    tl.store(out_ptr + offsets, gate * tl.sigmoid(gate) * up, mask=mask)


@torch.library.custom_op("blind_swiglu::forward", mutates_args=("out",))
def forward(gate: torch.Tensor, up: torch.Tensor, out: torch.Tensor) -> None:
    n = gate.numel()
    kernel[(triton.cdiv(n, 1024),)](gate, up, out, n, BLOCK=1024)


@forward.register_fake
def _(gate, up, out):
    return None


def triton_swiglu(gate, up):
    gate, up = gate.contiguous(), up.contiguous()
    out = torch.empty_like(gate)
    forward(gate, up, out)
    return out
