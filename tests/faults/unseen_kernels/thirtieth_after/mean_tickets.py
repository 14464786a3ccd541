"""Right: the last program of each row adds its parts; tickets and parts are kept over calls, and the last one resets its ticket.

op: mean
status: passed
"""

import torch
import triton
import triton.language as tl

_saved = {}


@triton.jit
def kernel(x_ptr, parts_ptr, tickets_ptr, out_ptr, m, n_parts, LOOPS: tl.constexpr, BLOCK: tl.constexpr,
           PARTS: tl.constexpr):
    # The last part first: an odd order, to end with the blocks that a next kernel reads first.
    row = tl.program_id(0).to(tl.int64)
    part = n_parts - 1 - tl.program_id(1)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for i in range(LOOPS):
        cols = (part.to(tl.int64) * LOOPS + i) * BLOCK + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + row * m + cols, mask=cols < m, other=0.0).to(tl.float32)
    tl.store(parts_ptr + row * n_parts + part, tl.sum(total, axis=0))
    tl.debug_barrier()
    ticket = tl.atomic_add(tickets_ptr + row, 1, sem="acq_rel", scope="gpu")
    if ticket == n_parts - 1:
        tl.debug_barrier()
        sums = tl.zeros((PARTS,), dtype=tl.float32)
        for start in range(0, n_parts, PARTS):
            at = start + tl.arange(0, PARTS)
            # Not by way of the first cache, which may hold parts of an earlier call.
            sums += tl.load(parts_ptr + row * n_parts + at, mask=at < n_parts, other=0.0, cache_modifier=".cg")
        tl.store(out_ptr + row, tl.sum(sums, axis=0) / m)
        tl.atomic_xchg(tickets_ptr + row, 0)


def _workspace(n, n_parts, device):
    """Return parts of any values and tickets that are zero, for one stream."""
    key = (device, torch.cuda.current_stream(device).cuda_stream if device.type == "cuda" else 0)
    parts, tickets = _saved.get(key, (None, None))
    if parts is None or parts.numel() < n * n_parts:
        parts = torch.empty(n * n_parts, dtype=torch.float32, device=device)
    if tickets is None or tickets.numel() < n:
        tickets = torch.zeros(n, dtype=torch.int32, device=device)
    _saved[key] = parts, tickets
    return parts, tickets


def triton_mean(x):
    m = x.shape[-1]
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    n = out.numel()
    x = x.contiguous()
    loops = 1 if m <= 65536 else 8
    n_parts = triton.cdiv(m, 512 * loops)
    parts, tickets = _workspace(n, n_parts, x.device)
    kernel[(n, n_parts)](x, parts, tickets, out, m, n_parts, LOOPS=loops, BLOCK=512, PARTS=64)
    return out
