"""Occupancy: the warps of a kernel that fit on an SM, and their limit. Pure arithmetic.

Source: the allocation rules of NVIDIA's CUDA occupancy calculator: registers by 256 a warp, shared
memory by 128 bytes with 1 KiB a block reserved (from sm_80), warps by 4.
"""

from __future__ import annotations

from typing import NamedTuple


class SmLimits(NamedTuple):
    """Resources of one SM."""

    warps: int
    blocks: int
    registers: int
    shared_bytes: int
    block_shared_bytes: int
    reserved_bytes: int


LIMITS = {
    75: SmLimits(32, 16, 65536, 65536, 65536, 0),
    80: SmLimits(64, 32, 65536, 167936, 166912, 1024),
    86: SmLimits(48, 16, 65536, 102400, 101376, 1024),
    89: SmLimits(48, 24, 65536, 102400, 101376, 1024),
    90: SmLimits(64, 32, 65536, 233472, 232448, 1024),
    100: SmLimits(64, 32, 65536, 233472, 232448, 1024),
    120: SmLimits(48, 32, 65536, 102400, 101376, 1024),
}


class Occupancy(NamedTuple):
    """Share of the SM's warps that can be resident, percent, and the resource that limits it."""

    percent: float
    limiter: str


def occupancy(
    target: int, *, registers: int, num_warps: int, shared_bytes: int
) -> Occupancy | None:
    """Return the occupancy of a kernel; None for a target whose limits are not known.

    Args:
        target: compute capability, 90 for sm_90.
        registers: per thread.
        num_warps: per block.
        shared_bytes: dynamic shared memory per block.

    Returns:
        0 % with the limiter `shared memory` where one block does not fit at all.
    """
    limits = LIMITS.get(target)
    if limits is None:
        return None
    per_warp = max(-(-registers * 32 // 256) * 256, 256)
    warps_by_registers = limits.registers // per_warp // 4 * 4
    per_block = -(-(shared_bytes + limits.reserved_bytes) // 128) * 128
    blocks = {
        "warps": limits.warps // num_warps,
        "blocks": limits.blocks,
        "registers": warps_by_registers // num_warps,
        "shared memory": limits.shared_bytes // per_block if per_block else limits.blocks,
    }
    if shared_bytes > limits.block_shared_bytes:
        blocks["shared memory"] = 0
    limiter = min(blocks, key=blocks.__getitem__)
    percent = 100 * blocks[limiter] * num_warps / limits.warps
    return Occupancy(percent, "nothing" if percent >= 100 else limiter)


def waves(
    target: int, resident: Occupancy, *, blocks: int, num_warps: int, sms: int
) -> float | None:
    """Return the number of times that a grid fills the GPU; None where not even one block fits.

    Args:
        target: compute capability, one of `LIMITS`.
        resident: the kernel's occupancy there.
        blocks: of the grid.
        num_warps: per block.
        sms: of the GPU.
    """
    at_once = round(resident.percent / 100 * LIMITS[target].warps / num_warps) * sms
    return blocks / at_once if at_once else None
