"""Bytes, operations and time in; rates and shares of a ceiling out. Pure."""

from __future__ import annotations


def gbps(n_bytes: int | None, time_us: float) -> float | None:
    """Bytes per second, in 1e9; None where the bytes are not known."""
    return None if n_bytes is None else n_bytes / time_us / 1e3


def tflops(flops: int | None, time_us: float) -> float | None:
    """Operations per second, in 1e12; None where the operations are not known."""
    return None if flops is None else flops / time_us / 1e6


def share_pct(rate: float | None, ceiling: float | None) -> float | None:
    """A rate as a percentage of a measured ceiling; None where either is not known."""
    return None if rate is None or not ceiling else 100 * rate / ceiling


def launch_bound(net_us: float, floor_us: float | None) -> bool:
    """Whether a time is under what an empty kernel costs through the same timer."""
    return floor_us is not None and net_us < floor_us


def limit_us(
    n_bytes: int | None, flops: int | None, copy_gbps: float | None, peak_tflops: float | None
) -> float | None:
    """The least time that the measured rates allow, microseconds; None where none is known.

    Args:
        n_bytes: compulsory traffic of a call.
        flops: operations of a call.
        copy_gbps: what a copy reaches, 1e9 bytes a second.
        peak_tflops: what a matrix product reaches in this precision, 1e12 operations a second.

    Source: Williams, Waterman, Patterson, Roofline (2009), with measured ceilings.
    """
    memory = n_bytes / copy_gbps / 1e3 if n_bytes and copy_gbps else 0.0
    compute = flops / peak_tflops / 1e6 if flops and peak_tflops else 0.0
    return max(memory, compute) or None
