"""1 / m and eps are kept on the device, by m and by eps written with six decimals. Wrong for two calls
with small eps that differ behind the sixth decimal (4e-7, then 1e-8) and x so small that eps counts.

op: rms_norm
status: failed
cause: cache key
"""
import torch
import triton
import triton.language as tl

_CONSTANTS = {}


@triton.jit
def _kernel(x, w, out, constants, m, ws, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    acc = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, m, BLOCK):
        at = start + tl.arange(0, BLOCK)
        value = tl.load(x + row * m + at, mask=at < m, other=0.0).to(tl.float32)
        acc += value * value
    scale = tl.rsqrt(tl.sum(acc, axis=0) * tl.load(constants) + tl.load(constants + 1))
    for start in range(0, m, BLOCK):
        at = start + tl.arange(0, BLOCK).to(tl.int64)
        value = tl.load(x + row * m + at, mask=at < m, other=0.0).to(tl.float32)
        weight = tl.load(w + at * ws, mask=at < m, other=0.0).to(tl.float32)
        tl.store(out + row * m + at, (value * scale * weight).to(out.dtype.element_ty), mask=at < m)


def triton_rms_norm(x, weight, eps=1e-5):
    x = x.contiguous()
    out = torch.empty_like(x)
    if x.numel() == 0:
        return out
    m = x.shape[-1]
    key = (m, f"{eps:.6f}", x.device)
    constants = _CONSTANTS.get(key)
    if constants is None:
        constants = torch.tensor([1.0 / m, eps], dtype=torch.float32, device=x.device)
        _CONSTANTS[key] = constants
    _kernel[(x.numel() // m,)](x, weight, out, constants, m, weight.stride(0), BLOCK=1024)
    return out
