"""Times at different moments: a retiming, a check, a history."""

from __future__ import annotations

from triton_magics.model import (
    History,
    HistoryPoint,
    RegressionCheck,
    Retiming,
    SpeedChange,
    Status,
)

from .kernels import GPU, sha256

THEN = GPU.evolve(triton="3.5.0")
MOMENT = "2026-10-02T09:14:00+00:00"


def speed_change(version: str, size: str, now_us: float, verdict: str = "same") -> SpeedChange:
    ratio = 13.0 / now_us
    return SpeedChange(
        version=version, size=size, sha256=sha256(version), recorded=MOMENT, then=THEN,
        then_us=13.0,
        now_us=now_us, torch_then_us=21.2, torch_now_us=21.2, ratio=ratio, low=0.99 * ratio,
        high=1.01 * ratio, threshold=0.05, verdict=verdict,
    )  # fmt: skip


def retiming() -> Retiming:
    slower = speed_change("v2_tiling", "large", 14.3, "slower")
    return Retiming(
        op="softmax", status=Status.PASSED, dtype="float32", environment=GPU,
        changes=(speed_change("v1_baseline", "large", 13.1), slower),
    )  # fmt: skip


def regression_check() -> RegressionCheck:
    value = retiming()
    return RegressionCheck(
        ops=("softmax", "gelu"), threshold=0.05, retimings=(value,), slower=value.slower,
        skipped={"gelu": "no time of a GPU is recorded"},
    )  # fmt: skip


def history() -> History:
    def point(day: int, version: str, speedup: float, triton: str) -> HistoryPoint:
        return HistoryPoint(
            time=f"2026-10-{day:02}T09:14:00+00:00", version=version, sha256=sha256(version),
            dtype="float32", sizes=("small", "medium", "large"), speedup=speedup, final_us=13.0,
            torch_us=21.2, device="NVIDIA H200", driver="580.65", torch="2.11.0", triton=triton,
        )  # fmt: skip

    points = [
        point(day, version, speedup, triton)
        for day, triton, factor in ((1, "3.5.0", 1.0), (2, "3.5.0", 1.01), (9, "3.6.0", 0.9))
        for version, speedup in (("v1_baseline", 1.2 * factor), ("v2_tiling", 1.63 * factor))
    ]
    return History(op="softmax", points=tuple(points))
