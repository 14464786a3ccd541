"""Rates from bytes, operations and times, as shares of a measured ceiling; pure."""

from __future__ import annotations

FASTER_PCT = 105.0  # share of the roofline from which a call is shown as faster than it


def gbps(n_bytes: int | None, time_us: float) -> float | None:
    """Return the bandwidth in 1e9 bytes per second; None if the bytes are unknown."""
    return None if n_bytes is None else n_bytes / time_us / 1e3


def tflops(flops: int | None, time_us: float) -> float | None:
    """Return the arithmetic rate in 1e12 operations per second; None if unknown."""
    return None if flops is None else flops / time_us / 1e6


def share_pct(rate: float | None, ceiling: float | None) -> float | None:
    """Return a rate as a percentage of a measured ceiling; None if either is unknown."""
    return None if rate is None or not ceiling else 100 * rate / ceiling


def launch_bound(net_us: float, floor_us: float | None) -> bool:
    """Return True if a time is below that of an empty kernel through the same timer."""
    return floor_us is not None and net_us < floor_us


def limit_us(
    n_bytes: int | None, flops: int | None, copy_gbps: float | None, peak_tflops: float | None
) -> float | None:
    """Return the time of a call at the measured rates, in us; None if none is known.

    The rates are those of other kernels, not of the hardware: a call can be faster.

    Args:
        n_bytes: compulsory traffic of a call.
        flops: operations of a call.
        copy_gbps: measured rate of a copy, 1e9 bytes per second.
        peak_tflops: measured rate of a matrix product in this precision, 1e12 per second.

    Source: Williams, Waterman, Patterson, Roofline (2009), with measured ceilings.
    """
    memory = n_bytes / copy_gbps / 1e3 if n_bytes and copy_gbps else 0.0
    compute = flops / peak_tflops / 1e6 if flops and peak_tflops else 0.0
    return max(memory, compute) or None
