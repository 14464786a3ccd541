"""Results of a benchmark: timings, comparisons, and one call at a glance."""

from __future__ import annotations

import statistics
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from triton_magics import roofline, stats
from triton_magics.errors import UnknownVersion
from triton_magics.model import older_records
from triton_magics.model.badge import Badge
from triton_magics.model.base import FILE_SIZE, SIZES, Clock, Value, short
from triton_magics.model.result import Result, VersionResult
from triton_magics.model.source import Compilation
from triton_magics.model.tabular import Tabular

CONFIDENCE = 0.99
"""Confidence of a comparison's interval, which is computed again as rounds are added."""


class Discard(Value):
    """Runs that did not count, and why."""

    reason: str
    count: int


class Timing(Value):
    """One provider at one size.

    `samples_us` are the official runs, microseconds, shape (runs,): on a GPU net of the timer's own
    cost. `raw_us` are the same runs as the events timed them. `extra_us` are further rounds, which
    feed only verdicts. A run is the mean of the middle half of `calls` calls.
    """

    provider: str
    size: str
    shape: tuple[int, ...]
    clock: Clock
    samples_us: Annotated[tuple[float, ...], Field(min_length=1)]
    raw_us: tuple[float, ...] = ()
    extra_us: tuple[float, ...] = ()
    discards: tuple[Discard, ...] = ()
    calls: int = 1
    bytes: int | None = None
    flops: int | None = None

    @property
    def mean_us(self) -> float:
        """Mean of the official runs: the figure for a size."""
        return statistics.fmean(self.samples_us)

    @property
    def median_us(self) -> float:
        """Middle of the official runs."""
        return statistics.median(self.samples_us)

    @property
    def std_us(self) -> float | None:
        """Sample standard deviation; None for a single run."""
        return statistics.stdev(self.samples_us) if len(self.samples_us) > 1 else None

    @property
    def min_us(self) -> float:
        """Fastest official run."""
        return min(self.samples_us)

    @property
    def max_us(self) -> float:
        """Slowest official run."""
        return max(self.samples_us)

    def percentile_us(self, percent: float) -> float:
        """Return the given percentile of the official runs, linear between neighbours."""
        return stats.percentile(self.samples_us, percent)

    @property
    def gbps(self) -> float | None:
        """Compulsory traffic per second, 1e9 bytes."""
        return roofline.gbps(self.bytes, self.mean_us)

    @property
    def tflops(self) -> float | None:
        """Algorithmic operations per second, 1e12."""
        return roofline.tflops(self.flops, self.mean_us)


class Comparison(Value):
    """Speedup of `candidate` over `baseline`, from paired rounds; > 1 is faster."""

    candidate: str
    baseline: str
    size: str
    ratio: float
    low: float
    high: float
    threshold: float
    rounds: int
    verdict: Literal["faster", "slower", "same", "undecided"]


class NotTimedCode(StrEnum):
    """A reason for a missing time that code acts on."""

    WRONG_OUTPUT = "wrong_output"
    CACHED = "cached"
    HOST_TOO_SLOW = "host_too_slow"
    IMPOSSIBLE = "impossible"


class NotTimed(Value):
    """A provider and size without a time, and why. `provider` None: all of them."""

    size: str
    provider: str | None = None
    reason: str
    code: NotTimedCode | None = None
    estimate_s: float | None = None


class CensusKernel(Value):
    """A kernel of a call, by CUPTI: how often it ran, for how long in all, on which stream."""

    name: str
    stream: int
    count: float
    us: float
    triton: bool


class Census(Value):
    """The kernels of one provider's call at a size, or the reason why there are none.

    The clock is `kernels`: CUPTI, caches warm, in a pass of its own after the timing.
    """

    provider: str
    size: str
    kernels: tuple[CensusKernel, ...] = ()
    note: str | None = None

    @property
    def streams(self) -> tuple[int, ...]:
        """The streams that its kernels ran on."""
        return tuple(sorted({k.stream for k in self.kernels}))

    @property
    def triton_share(self) -> float | None:
        """Share of the kernels' time that is Triton's, 0 to 1; None without kernels."""
        whole = sum(k.us for k in self.kernels)
        return sum(k.us for k in self.kernels if k.triton) / whole if whole else None


class Benchmark(Tabular, Result):
    """Times of every provider at every size, in one session, in random order.

    `timer_us` is what the timer adds to a call, and is taken off every net time. `against` are the
    providers, torch apart, that every version is compared with. `sizes` are names of the op's
    sizes, or shapes of the caller's own as text: `8192x151936`. `op_sizes` are the names of all of
    the op's sizes, over which a final is the mean. `backward_only`: the forward pass was not timed,
    so that there is no final. `compilations` of the versions, as recorded, stand beside times of an
    interpreter, which say nothing about a GPU.
    """

    rows_of: ClassVar[str] = "timings"

    kind: Literal["benchmark"] = "benchmark"
    op: str
    versions: tuple[str, ...]
    sha256s: tuple[str, ...]
    providers: tuple[str, ...]
    sizes: tuple[str, ...]
    op_sizes: Annotated[tuple[str, ...], Field(min_length=1)] = SIZES
    runs: int
    dtype: str
    against: tuple[str, ...] = ()
    clock: Clock | None = None
    cold: bool = True
    backward_only: bool = False
    timings: tuple[Timing, ...] = ()
    comparisons: tuple[Comparison, ...] = ()
    controls: tuple[Comparison, ...] = ()
    not_timed: tuple[NotTimed, ...] = ()
    floor_us: float | None = None
    empty_kernel_us: float | None = None
    tick_us: float | None = None
    timer_us: float | None = None
    copy_gbps: float | None = None
    matmul_tflops: dict[str, float] = Field(default_factory=dict)
    ceilings_measured: str | None = None
    conditions: tuple[str, ...] = ()
    census: tuple[Census, ...] = ()
    compilations: tuple[Compilation, ...] = ()
    seed: int
    badges: tuple[Badge, ...] = ()

    @model_validator(mode="after")
    def _check_timings(self) -> Self:
        if self.passed and not self.timings:
            raise ValueError(f"{self.op}: a benchmark that passed has timings")
        if len(self.versions) != len(self.sha256s):
            raise ValueError(f"{self.op}: each version has one sha256")
        return self

    def provider(self, name: str) -> str:
        """Return the whole provider name of `v2`, `v2_tiling` or `torch`.

        Raises:
            UnknownVersion: no such provider was timed here.
        """
        for provider in self.providers:
            if name in (provider, short(provider)):
                return provider
        raise UnknownVersion(f"{name!r} is not in this benchmark: {', '.join(self.providers)}")

    def timing(self, provider: str, size: str) -> Timing | None:
        """Return the timing, or None where there is none."""
        name = self.provider(provider)
        hits = (t for t in self.timings if t.provider == name and t.size == size)
        return next(hits, None)

    def final_us(self, provider: str) -> float | None:
        """Return the final: the mean of the means of the op's sizes.

        None unless all of them were timed, by the same clock, and whole.
        """
        if self.backward_only:
            return None
        timings = [t for size in self.op_sizes if (t := self.timing(provider, size))]
        if len(timings) < len(self.op_sizes) or len({t.clock for t in timings}) > 1:
            return None
        return statistics.fmean(t.mean_us for t in timings)

    def speedup(self, version: str, baseline: str = "torch") -> float | None:
        """Return the ratio of finals, > 1 is faster; None without both, or in the interpreter."""
        if not self.on_gpu or baseline not in self.providers:
            return None
        reference, own = self.final_us(baseline), self.final_us(version)
        return reference / own if reference and own else None

    def size_speedup(self, version: str, size: str, baseline: str = "torch") -> float | None:
        """Return the ratio of one size's means, > 1 is faster; None as for `speedup`."""
        if not self.on_gpu or baseline not in self.providers:
            return None
        reference, own = self.timing(baseline, size), self.timing(version, size)
        return reference.mean_us / own.mean_us if reference and own else None

    def geomean_speedup(self, version: str, baseline: str = "torch") -> float | None:
        """Return the geometric mean of the sizes' speedups; None unless all were timed."""
        ratios = [self.size_speedup(version, size, baseline) for size in self.op_sizes]
        measured = [r for r in ratios if r is not None]
        return statistics.geometric_mean(measured) if len(measured) == len(ratios) else None

    def comparison(self, candidate: str, size: str, baseline: str = "torch") -> Comparison | None:
        """Return the verdict between two providers at a size."""
        pair = (self.provider(candidate), self.provider(baseline), size)
        hits = (c for c in self.comparisons if (c.candidate, c.baseline, c.size) == pair)
        return next(hits, None)

    def limit_us(self, size: str) -> float | None:
        """Return a size's time at the GPU's measured rates of a copy and of torch's matmul, us.

        None without a GPU's times, or where no rate or no traffic is known.
        """
        timing = next((t for t in self.timings if t.size == size), None)
        if timing is None or not self.on_gpu:
            return None
        peak_tflops = self.matmul_tflops.get(self.dtype)
        return roofline.limit_us(timing.bytes, timing.flops, self.copy_gbps, peak_tflops)

    @property
    def on_gpu(self) -> bool:
        """True if its times are a GPU's, so that they can be compared with torch's."""
        return self.clock not in (None, "interpreter")

    @property
    def is_whole(self) -> bool:
        """True if it timed whole calls, on inputs that the op draws: others compare with these."""
        return not self.backward_only and FILE_SIZE not in self.sizes

    @property
    def fastest(self) -> str | None:
        """The version with the smallest final; None where nothing was ranked."""
        if not self.on_gpu:
            return None
        finals = {v: f for v in self.versions if (f := self.final_us(v)) is not None}
        return min(finals, key=finals.__getitem__, default=None)


class SelfCheck(Value):
    """One check of the timing, and the text of its outcome."""

    name: str
    passed: bool
    outcome: str

    @model_validator(mode="before")
    @classmethod
    def _convert_older(cls, value: Any) -> Any:
        return older_records.rename_fields(value, {"what": "name", "said": "outcome"})


class SelfTest(Result):
    """Verdict on the timing itself, on this GPU."""

    kind: Literal["selftest"] = "selftest"
    checks: tuple[SelfCheck, ...] = ()

    @model_validator(mode="after")
    def _check_checks(self) -> Self:
        if self.passed and not (self.checks and all(check.passed for check in self.checks)):
            raise ValueError("a self-test passes only if it has checks and all of them pass")
        return self


class TensorSummary(Value):
    """An output at a glance; min, max and mean are None for an empty tensor."""

    shape: tuple[int, ...]
    dtype: str
    device: str
    min: float | None = None
    max: float | None = None
    mean: float | None = None
    n_nan: int = 0


class RunResult(VersionResult):
    """Two calls of a version: their outputs, how long the host waited, the printed text."""

    kind: Literal["run"] = "run"
    inputs: str
    outputs: tuple[TensorSummary, ...] = ()
    first_call_ms: float | None = None
    second_call_ms: float | None = None

    @model_validator(mode="after")
    def _check_calls(self) -> Self:
        if self.passed and (self.first_call_ms is None or self.second_call_ms is None):
            raise ValueError(f"{self.op} {self.version}: a run that passed has its two durations")
        return self
