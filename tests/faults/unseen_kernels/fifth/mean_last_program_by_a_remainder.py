"""The counter of finished parts is never cleared but taken modulo their number: after a call with another number of parts the wrong program finishes.

op: mean
status: failed
cause: stale counter
"""

import torch
import triton
import triton.language as tl
PART = 512
_COUNTERS = {}


@triton.jit
def kernel(x_ptr, parts_ptr, counter_ptr, out_ptr, n_cols, n_parts, BLOCK: tl.constexpr, PARTS: tl.constexpr):
    row, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
    cols = part * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
    tl.store(parts_ptr + row * n_parts + part, tl.sum(x, axis=0))
    tl.debug_barrier()
    done = tl.atomic_add(counter_ptr + row, 1, sem="acq_rel")
    if done % n_parts == n_parts - 1:  # the last one: no need to clear the counter
        places = tl.arange(0, PARTS)
        parts = tl.load(parts_ptr + row * n_parts + places, mask=places < n_parts, other=0.0)
        tl.store(out_ptr + row, tl.sum(parts, axis=0) / n_cols)


def triton_mean(x):
    x = x.contiguous()
    n_cols = x.shape[-1]
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    n_rows = out.numel()
    n_parts = triton.cdiv(n_cols, PART)
    key = (n_rows, x.device)
    if key not in _COUNTERS:
        _COUNTERS[key] = torch.zeros(n_rows, dtype=torch.int32, device=x.device)
    parts = torch.zeros((n_rows, n_parts), dtype=torch.float32, device=x.device)
    kernel[(n_rows, n_parts)](
        x, parts, _COUNTERS[key], out, n_cols, n_parts, BLOCK=PART, PARTS=triton.next_power_of_2(n_parts)
    )
    return out
