"""The first call for a row length measures the range and decides for all later ones that no maximum is needed: wrong when later logits are large.

op: softmax
status: failed
cause: state
"""

import torch
import triton
import triton.language as tl


_small = {}


@triton.jit
def range_kernel(x_ptr, largest_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    tl.atomic_max(largest_ptr, tl.max(tl.abs(x), axis=0))


@triton.jit
def kernel(x_ptr, out_ptr, m, SMALL: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < m
    x = tl.load(x_ptr + row * m + cols, mask=mask, other=-float("inf")).to(tl.float32)
    if not SMALL:
        x = x - tl.max(x, axis=0)
    e = tl.exp(x)
    tl.store(out_ptr + row * m + cols, e / tl.sum(e, axis=0), mask=mask)


def is_small(x):
    """Say whether exp of the values cannot overflow; a model's logits have one range, so ask once."""
    key = (x.shape[-1], x.dtype, x.device)
    if key not in _small:
        largest = torch.zeros(1, dtype=torch.float32, device=x.device)
        range_kernel[(triton.cdiv(x.numel(), 4096),)](x, largest, x.numel(), BLOCK=4096)
        _small[key] = largest.item() < 40.0
    return _small[key]


def triton_softmax(x):
    x = x.contiguous()
    m = x.shape[-1]
    out = torch.empty_like(x)
    kernel[(x.numel() // m,)](x, out, m, SMALL=is_small(x), BLOCK=triton.next_power_of_2(m))
    return out
