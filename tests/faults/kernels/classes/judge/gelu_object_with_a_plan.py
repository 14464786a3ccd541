"""An object with slots launches by a plan that it has made from the shape.

op: gelu
status: passed
drawn: no
round: second
"""

import functools
from dataclasses import dataclass

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    tl.store(out_ptr + offsets, 0.5 * x * (1.0 + tl.erf(x * 0.70710678118654752)), mask=mask)


@dataclass(frozen=True, slots=True)
class Plan:
    n: int
    block: int

    @property
    def grid(self):
        return (triton.cdiv(self.n, self.block),)

    def __call__(self, x, out):
        kernel[self.grid](x, out, self.n, BLOCK=self.block)
        return out


@functools.lru_cache(maxsize=64)
def plan_for(n):
    return Plan(n, 256 if n < 2**14 else 2048)


class Gelu:
    __slots__ = ()

    def __call__(self, x):
        x = x.contiguous()
        return plan_for(x.numel())(x, torch.empty_like(x))


triton_gelu = Gelu()
