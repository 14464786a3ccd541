"""Weight and bias are packed once into float32 pairs, again where their version counter changed: an update past the counter (weight.data, another kernel) is missed.

op: layer_norm
status: failed
cause: stale
"""

import weakref

import torch
import triton
import triton.language as tl

_packed = {}


@triton.jit
def pack_kernel(weight_ptr, bias_ptr, pair_ptr, weight_step, bias_step, m, BLOCK: tl.constexpr):
    cols = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = cols < m
    tl.store(pair_ptr + 2 * cols, tl.load(weight_ptr + cols * weight_step, mask=mask).to(tl.float32), mask=mask)
    tl.store(pair_ptr + 2 * cols + 1, tl.load(bias_ptr + cols * bias_step, mask=mask).to(tl.float32), mask=mask)


@triton.jit
def norm_kernel(x_ptr, pair_ptr, out_ptr, m, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * m
    cols = tl.arange(0, BLOCK)
    mask = cols < m
    x = tl.load(x_ptr + row + cols, mask=mask, other=0.0).to(tl.float32)
    distance = tl.where(mask, x - tl.sum(x, axis=0) / m, 0.0)
    rstd = 1.0 / tl.sqrt(tl.sum(distance * distance, axis=0) / m + eps)
    weight = tl.load(pair_ptr + 2 * cols, mask=mask)
    bias = tl.load(pair_ptr + 2 * cols + 1, mask=mask)
    tl.store(out_ptr + row + cols, distance * rstd * weight + bias, mask=mask)


def pack(weight, bias):
    m = weight.numel()
    pairs = torch.empty((m, 2), dtype=torch.float32, device=weight.device)
    pack_kernel[(triton.cdiv(m, 1024),)](weight, bias, pairs, weight.stride(0), bias.stride(0), m, BLOCK=1024)
    return pairs


def pairs_of(weight, bias):
    """Pack once for each pair of parameters: they are read far more often than written."""
    if weight.is_inference() or bias.is_inference():  # these have no version counter
        return pack(weight, bias)
    key, versions = (id(weight), id(bias)), (weight._version, bias._version)
    entry = _packed.get(key)
    # An id may be that of a newer tensor: the weak references tell.
    if entry and entry[0]() is weight and entry[1]() is bias and entry[2] == versions:
        return entry[3]
    if len(_packed) >= 256:
        _packed.clear()
    pairs = pack(weight, bias)
    _packed[key] = weakref.ref(weight), weakref.ref(bias), versions, pairs
    return pairs


def triton_layer_norm(x, weight, bias, eps=1e-5):
    x = x.contiguous()
    out = torch.empty_like(x)
    if x.numel():
        m = x.shape[-1]
        pairs = pairs_of(weight, bias)
        norm_kernel[(x.numel() // m,)](x, pairs, out, m, float(eps), BLOCK=triton.next_power_of_2(m))
    return out
