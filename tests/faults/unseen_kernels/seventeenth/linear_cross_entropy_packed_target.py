"""The tile and the lane of the target's class are packed in 16 bits: from 65536 classes on another class is taken.

op: linear_cross_entropy
status: failed
cause: extents
"""

import torch
import triton
import triton.language as tl


@triton.jit
def pack_kernel(target_ptr, packed_ptr, rows, BN: tl.constexpr, BITS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    target = tl.load(target_ptr + at, mask=at < rows, other=0).to(tl.int32)
    packed = ((target // BN) << BITS) | (target % BN)
    tl.store(packed_ptr + at, packed.to(tl.int16), mask=at < rows)


@triton.jit
def kernel(
    x_ptr, w_ptr, packed_ptr, loss_ptr, rows, classes, hidden,
    BITS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):
    at = tl.program_id(0) * BM + tl.arange(0, BM)
    packed = tl.load(packed_ptr + at, mask=at < rows, other=0).to(tl.int32) & 0xFFFF
    tile, lane = packed >> BITS, packed & (BN - 1)
    largest = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    chosen = tl.zeros((BM,), dtype=tl.float32)
    for number in range(0, tl.cdiv(classes, BN)):
        lanes = tl.arange(0, BN)
        cols = number * BN + lanes
        logits = tl.zeros((BM, BN), dtype=tl.float32)
        for start in range(0, hidden, BK):
            ks = start + tl.arange(0, BK)
            x = tl.load(x_ptr + at[:, None] * hidden + ks[None, :], mask=(at < rows)[:, None] & (ks < hidden)[None, :], other=0.0)
            w = tl.load(w_ptr + cols[None, :] * hidden + ks[:, None], mask=(cols < classes)[None, :] & (ks < hidden)[:, None], other=0.0)
            logits += tl.dot(x.to(tl.float32), w.to(tl.float32), input_precision="ieee")
        logits = tl.where((cols < classes)[None, :], logits, -float("inf"))
        hit = (tile == number)[:, None] & (lane[:, None] == lanes[None, :])
        chosen += tl.sum(tl.where(hit, logits, 0.0), axis=1)
        new = tl.maximum(largest, tl.max(logits, axis=1))
        total = total * tl.exp(largest - new) + tl.sum(tl.exp(logits - new[:, None]), axis=1)
        largest = new
    tl.store(loss_ptr + at, largest - chosen + tl.log(total), mask=at < rows)


@triton.jit
def mean_kernel(loss_ptr, out_ptr, rows, BLOCK: tl.constexpr):
    sums = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, rows, BLOCK):
        at = start + tl.arange(0, BLOCK)
        sums += tl.load(loss_ptr + at, mask=at < rows, other=0.0)
    tl.store(out_ptr, tl.sum(sums, axis=0) / rows)


def triton_linear_cross_entropy(x, weight, target):
    x, weight, target = x.contiguous(), weight.contiguous(), target.contiguous()
    (rows, hidden), classes = x.shape, weight.shape[0]
    packed = torch.empty(rows, dtype=torch.int16, device=x.device)
    loss = torch.empty(rows, dtype=torch.float32, device=x.device)
    out = torch.empty((), dtype=x.dtype, device=x.device)
    pack_kernel[(triton.cdiv(rows, 256),)](target, packed, rows, BN=128, BITS=7, BLOCK=256)
    kernel[(triton.cdiv(rows, 16),)](x, weight, packed, loss, rows, classes, hidden, BITS=7, BM=16, BN=128, BK=32)
    mean_kernel[(1,)](loss, out, rows, BLOCK=256)
    return out
