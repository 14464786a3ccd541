"""The roofline of a profiled call: its bytes and operations against this GPU's measured rates."""

from __future__ import annotations

from typing import Literal

from triton_magics import roofline
from triton_magics.model.base import Value


class CallRoofline(Value):
    """The least work of one call, its time, and the measured ceilings of the GPU.

    Attributes:
        bytes: compulsory traffic: every tensor once.
        flops: operations of the op; None where it declares none.
        time_us: GPU time of the call.
        clock: what measured that time: Nsight Compute, CUPTI, or a benchmark.
        copy_gbps: measured rate of a copy, 1e9 bytes per second.
        peak_tflops: measured rate of a matrix product in the call's dtype, 1e12 per second.
    """

    bytes: int | None = None
    flops: int | None = None
    time_us: float | None = None
    clock: Literal["counters", "activity", "benchmark"]
    copy_gbps: float | None = None
    peak_tflops: float | None = None

    @property
    def gbps(self) -> float | None:
        """Compulsory traffic per second, 1e9 bytes."""
        return roofline.gbps(self.bytes, self.time_us) if self.time_us else None

    @property
    def tflops(self) -> float | None:
        """Operations per second, 1e12."""
        return roofline.tflops(self.flops, self.time_us) if self.time_us else None

    @property
    def intensity(self) -> float | None:
        """Operations per byte of compulsory traffic."""
        return self.flops / self.bytes if self.flops and self.bytes else None

    @property
    def limit_us(self) -> float | None:
        """The time of the call at the measured rates of a copy and of torch's matmul."""
        return roofline.limit_us(self.bytes, self.flops, self.copy_gbps, self.peak_tflops)

    @property
    def share_pct(self) -> float | None:
        """The roofline as a percentage of the time; over 100: faster than the measured rate."""
        return roofline.share_pct(self.limit_us, self.time_us)

    @property
    def bound(self) -> Literal["memory", "compute"] | None:
        """The rate that gives the roofline; None where none is known."""
        if self.limit_us is None:
            return None
        memory = roofline.limit_us(self.bytes, None, self.copy_gbps, None)
        return "memory" if self.limit_us == memory else "compute"


__all__ = ["CallRoofline"]
