"""Who made the output: Triton kernels seen, torch operations seen, the share of GPU time."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field

import torch

from triton_magics.model import Case, CaseResult, CaseStatus
from triton_magics.worker.cases import make_pristine
from triton_magics.worker.launches import Launches, watching
from triton_magics.worker.subject import Subject, plain
from triton_magics.worker.timers import GatedTimer

SAMPLES = 3


@dataclass
class Evidence:
    """What the cases have shown so far.

    Attributes:
        kernels: names of the Triton kernels that ran.
        torch_ops: ATen operations that ran on the device beside them, allocations left out.
        share: of the GPU's time in Triton kernels, 0 to 1; None where it could not be told.
    """

    kernels: dict[str, None] = field(default_factory=dict)
    torch_ops: dict[str, None] = field(default_factory=dict)
    share: float | None = None
    _largest: Case | None = None
    _idle: bool = False

    def add(self, seen: Launches, case: Case, result: CaseResult) -> None:
        """What one case has shown."""
        self.kernels.update(dict.fromkeys(seen.names))
        self.torch_ops.update(dict.fromkeys(seen.torch_ops))
        sized = result.status is CaseStatus.PASSED and case.size is not None
        larger = self._largest is None or _volume(case) > _volume(self._largest)
        if sized and larger:
            self._largest, self._idle = case, not seen.torch_ops

    def measure(self, subject: Subject) -> None:
        """The share at the largest size that passed: 1 where torch did nothing there, else timed.

        A call is timed behind a gate on the GPU, so that the host is not in it, once as it is and
        once with every Triton launch taken out; what is left is torch's. No profiler takes part:
        this process may time versions later.
        """
        if subject.interpreted or self._largest is None:
            return
        if self._idle:
            self.share = 1.0
            return
        given = make_pristine(subject.op, self._largest, subject.device)
        try:
            self.share = _share(subject, given)
        except BaseException:  # noqa: BLE001 (without its launches the version may raise anything)
            self.share = None


def _volume(case: Case) -> int:
    return torch.Size(case.shape).numel()


def _share(subject: Subject, given: tuple[object, ...]) -> float | None:
    timer = GatedTimer(2**20, cold=False)
    floor_us = timer.gauged({}).floor_us
    whole = _time_us(subject, given, timer) - floor_us
    with watching(suppress=True):
        torchs = _time_us(subject, given, timer) - floor_us
    return min(max(1 - torchs / whole, 0.0), 1.0) if whole > 0 else None


def _time_us(subject: Subject, given: tuple[object, ...], timer: GatedTimer) -> float:
    plain(subject, given)
    samples = [timer.sample(lambda: plain(subject, given)).raw_us for _ in range(SAMPLES)]
    return statistics.median(samples)
