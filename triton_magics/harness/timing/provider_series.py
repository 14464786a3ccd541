"""The measurements of one provider at one size, and the sign of cached answers in them."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

from triton_magics import stats
from triton_magics.harness.timing.timed_contents import OutputFault
from triton_magics.model import NotTimedCode

CACHING_RATIO = 1.5  # a run's first call of a softmax on an H200 takes at most 1.07 of the others
CACHING_MIN_RUNS = 5
SLOW_ON_NEW = "calls on new inputs take {:.1f}x as long as calls on inputs that it had before"


@dataclass
class ProviderSeries:
    """One provider's measurements at one size, by round.

    Attributes:
        raw_us: duration of each run, microseconds.
        new_ratios: in each run, duration of the calls on new contents over that of the others.
        known_contents: numbers of the contents that the provider was called with.
        discards: number of discarded samples by reason.
    """

    raw_us: list[float] = field(default_factory=list)
    new_ratios: list[float] = field(default_factory=list)
    known_contents: set[int] = field(default_factory=set)
    discards: dict[str, int] = field(default_factory=dict)

    def compare_new(self, net_us: Sequence[float], contents: Sequence[int]) -> None:
        """Compare a run's calls on new contents with the others.

        Args:
            net_us: duration of each call, microseconds.
            contents: the number of each call's contents.
        """
        is_new = [
            n not in self.known_contents and n not in contents[:i] for i, n in enumerate(contents)
        ]
        self.known_contents.update(contents)
        new_us = [us for us, new in zip(net_us, is_new, strict=True) if new]
        others_us = [us for us, new in zip(net_us, is_new, strict=True) if not new]
        if new_us and others_us:
            self.new_ratios.append(statistics.fmean(new_us) / stats.middle_mean(others_us))

    def find_caching(self) -> OutputFault | None:
        """Return the fault if calls on new contents are far slower; some runs are needed."""
        if len(self.new_ratios) < CACHING_MIN_RUNS:
            return None
        ratio = statistics.median(self.new_ratios)
        if ratio < CACHING_RATIO:
            return None
        return OutputFault(SLOW_ON_NEW.format(ratio), NotTimedCode.CACHED)
