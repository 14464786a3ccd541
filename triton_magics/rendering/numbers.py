"""Numbers as text: a unit that fits the size, and few digits."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

MISSING = "—"
_EXPONENT = re.compile(r"e\+?(-?)0*(\d)")


def time_text(time_us: float | None) -> str:
    """Return a kernel's time: `0.54 us`, `1.9 us`, `312 us`, `2.68 ms`, `4.1 s`; `—` for None.

    Args:
        time_us: microseconds.
    """
    if time_us is None:
        return MISSING
    if not math.isfinite(time_us):
        return f"{time_us} us"
    if time_us < 999.5:
        return f"{time_us:.{_decimals(time_us, 1, 100)}f} us"
    if time_us < 999.5e3:
        return f"{time_us / 1e3:.{_decimals(time_us / 1e3, 10, 100)}f} ms"
    return f"{time_us / 1e6:.{1 if time_us < 99.5e6 else 0}f} s"


def _decimals(value: float, two_below: float, one_below: float) -> int:
    if value < two_below:
        return 2
    return 1 if value < one_below else 0


def duration_text(seconds: float) -> str:
    """Return a duration: `30 ms`, `0.4 s`, `24 s`, `5 min 12 s`."""
    if seconds < 0.095:
        return f"{seconds * 1e3:.0f} ms"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    if seconds < 119.5:
        return f"{seconds:.0f} s"
    return f"{round(seconds) // 60} min {round(seconds) % 60} s"


def ratio_text(ratio: float | None) -> str:
    """Return a speedup: `1.63x`, `12.3x`, `140x`."""
    if ratio is None:
        return MISSING
    return f"{ratio:.{_decimals(ratio, 9.995, 99.95)}f}x"


def number_text(value: float) -> str:
    """Return four significant digits, without trailing zeros; `1e-5`, `nan`, `inf`."""
    return _EXPONENT.sub(r"e\1\2", f"{value:.4g}")


def exact_text(value: float) -> str:
    """Return an element of an output with seven digits, the precision of float32."""
    return _EXPONENT.sub(r"e\1\2", f"{value:.7g}")


def fixed_text(value: float) -> str:
    """Return a number for a column: `2.200`, `55.10`, `312.4`."""
    decimals = 3 if abs(value) < 9.9995 else 2 if abs(value) < 99.995 else 1
    return f"{value:.{decimals}f}"


def share_text(share: float) -> str:
    """Return an error as a multiple of the tolerance: `0.4`, `0.03`, `31`, `nan`."""
    if not math.isfinite(share):
        return str(share)
    if share < 9.5:
        return f"{share:.{1 if share < 0.95 else 2}g}" if share >= 1e-3 else "0.001 or less"
    return f"{share:,.0f}" if share < 1e6 else f"{share:.0e}"


def allowed_text(share: float) -> str:
    """Return `0.4 of what is allowed`, `31 times what is allowed`, `nan`."""
    if not math.isfinite(share):
        return str(share)
    return f"{share_text(share)} {'of' if share <= 1 else 'times'} what is allowed"


def percent_text(percent: float) -> str:
    """Return `97 %`, `0.4 %`; never round to 100 or 0 what is less or more."""
    if 99.5 <= percent < 99.95 or 0 < percent < 0.95:
        return f"{percent:.1f} %"
    return f"{percent:.0f} %"


def rate_text(gbps: float) -> str:
    """Return a bandwidth: `312 GB/s`, `4.05 TB/s`."""
    if gbps >= 999.5:
        return f"{gbps / 1e3:.2f} TB/s"
    return f"{gbps:.{_decimals(gbps, 10, 100)}f} GB/s"


def flops_text(tflops: float) -> str:
    """Return an arithmetic rate: `45 GFLOP/s`, `512 TFLOP/s`."""
    if tflops < 0.9995:
        return f"{tflops * 1e3:.3g} GFLOP/s"
    return f"{tflops:.3g} TFLOP/s" if tflops < 999.5 else f"{tflops:.0f} TFLOP/s"


def bytes_text(n_bytes: int) -> str:
    """Return `512 B`, `48 KiB`, `1.5 MiB`."""
    for unit, size in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if n_bytes >= size:
            return f"{n_bytes / size:.3g} {unit}"
    return f"{n_bytes} B"


def count_text(n: int, noun: str, plural: str | None = None) -> str:
    """Return `1 case`, `46 cases`, `262,911 elements`."""
    return f"{n:,} {noun if n == 1 else plural or noun + 's'}"


def list_text(items: Sequence[str], *, most: int = 8) -> str:
    """Return `a, b, c`; cut a long list and add `and 3 more`."""
    cut = len(items) - most
    return ", ".join(items[:most]) + (f" and {cut} more" if cut > 0 else "")


def join_with_and(items: Sequence[str]) -> str:
    """Return `a`, `a and b`, `a, b and c`."""
    return " and ".join([", ".join(items[:-1]), items[-1]] if len(items) > 1 else items)
