"""Split-K writes its parts into a kept workspace with a power of two of slots, and the reduction adds all slots.
After a call with more parts a call of the same m, n with fewer parts (5 after 8) adds what is left in the others.

op: matmul
status: failed
cause: stale workspace
"""
import torch
import triton
import triton.language as tl

_PART = 512
_WORKSPACES = {}


@triton.jit
def _parts(a, b, ws, m, n, k, sam, sak, sbk, sbn, PART: tl.constexpr,
           BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    part = tl.program_id(2)
    i = (tl.program_id(0) * BM + tl.arange(0, BM)).to(tl.int64)
    j = (tl.program_id(1) * BN + tl.arange(0, BN)).to(tl.int64)
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, PART, BK):
        l = (part * PART + start + tl.arange(0, BK)).to(tl.int64)
        x = tl.load(a + i[:, None] * sam + l[None, :] * sak,
                    mask=(i < m)[:, None] & (l < k)[None, :], other=0.0).to(tl.float32)
        y = tl.load(b + l[:, None] * sbk + j[None, :] * sbn,
                    mask=(l < k)[:, None] & (j < n)[None, :], other=0.0).to(tl.float32)
        acc = tl.dot(x, y, acc, input_precision="ieee")
    ok = (i < m)[:, None] & (j < n)[None, :]
    tl.store(ws + part.to(tl.int64) * m * n + i[:, None] * n + j[None, :], acc, mask=ok)


@triton.jit
def _reduce(ws, out, size, SLOTS: tl.constexpr, BLOCK: tl.constexpr):
    e = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    s = tl.arange(0, SLOTS).to(tl.int64)
    v = tl.load(ws + s[:, None] * size + e[None, :], mask=(e < size)[None, :], other=0.0)
    tl.store(out + e, tl.sum(v, 0).to(out.dtype.element_ty), mask=e < size)


def triton_matmul(a, b):
    m, k = a.shape
    n = b.shape[1]
    out = torch.empty((m, n), dtype=a.dtype, device=a.device)
    if not m * n or not k:
        return out.zero_()
    parts = triton.cdiv(k, _PART)
    slots = triton.next_power_of_2(parts)  # tl.arange needs one; the others stay zero
    key = m, n, slots, a.device
    if key not in _WORKSPACES:
        _WORKSPACES.clear()  # one is enough: a model repeats its shapes
        _WORKSPACES[key] = torch.zeros((slots, m, n), dtype=torch.float32, device=a.device)
    ws = _WORKSPACES[key]
    grid = triton.cdiv(m, 64), triton.cdiv(n, 64), parts
    _parts[grid](a, b, ws, m, n, k, *a.stride(), *b.stride(), PART=_PART, BM=64, BN=64, BK=64)
    _reduce[(triton.cdiv(m * n, 1024),)](ws, out, m * n, SLOTS=slots, BLOCK=1024)
    return out
