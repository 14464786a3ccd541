"""Two cached buffers take turns, and each call clears the other for the next, but only as many rows as it has itself: after a smaller call a larger one adds to old sums.

op: rms_norm
status: failed
cause: workspace
"""

import torch
import triton
import triton.language as tl

_state = {}


@triton.jit
def squares(x_ptr, sums_ptr, next_ptr, m, sx0, sx1, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    part = tl.program_id(1)
    cols = (part * BLOCK + tl.arange(0, BLOCK)).to(tl.int64)
    x = tl.load(x_ptr + row * sx0 + cols * sx1, mask=cols < m, other=0.0).to(tl.float32)
    tl.atomic_add(sums_ptr + row, tl.sum(x * x, axis=0))
    if part == 0:
        tl.store(next_ptr + row, 0.0)  # no memset before the next call


@triton.jit
def normalize(x_ptr, weight_ptr, sums_ptr, out_ptr, m, sx0, sx1, sw, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = (tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)).to(tl.int64)
    mask = cols < m
    rest = tl.rsqrt(tl.load(sums_ptr + row) / m + eps)
    x = tl.load(x_ptr + row * sx0 + cols * sx1, mask=mask, other=0.0).to(tl.float32)
    weight = tl.load(weight_ptr + cols * sw, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + row * m + cols, x * rest * weight, mask=mask)


def _buffers(n, device):
    """Return the sums of this call, all zero, and those of the next."""
    key = (device, torch.cuda.current_stream(device).cuda_stream if device.type == "cuda" else 0)
    buffers, turn = _state.get(key, (None, 0))
    if buffers is None or buffers[0].numel() < n:
        size = max(4096, triton.next_power_of_2(n))
        buffers = [torch.zeros(size, dtype=torch.float32, device=device) for _ in range(2)]
    _state[key] = buffers, 1 - turn
    return buffers[turn], buffers[1 - turn]


def triton_rms_norm(x, weight, eps=1e-5):
    m = x.shape[-1]
    flat = x.reshape(-1, m)
    n = flat.shape[0]
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    now, later = _buffers(n, x.device)
    grid = (n, triton.cdiv(m, 1024))
    squares[grid](flat, now, later, m, flat.stride(0), flat.stride(1), BLOCK=1024)
    normalize[grid](flat, weight, now, out, m, flat.stride(0), flat.stride(1), weight.stride(0), eps, BLOCK=1024)
    return out
