"""Benchmarks with times, comparisons and controls."""

from __future__ import annotations

from typing import Any

from triton_magics import stats
from triton_magics.model import (
    Badge,
    BadgeCode,
    Benchmark,
    Comparison,
    Discard,
    NotTimed,
    Status,
    Timing,
)

from .kernels import CPU, GPU, SHAPES, SOURCE, TIMES_US, sha256

QUICK = Badge.of(BadgeCode.QUICK_PLAN)
LOOSENED = Badge.of(BadgeCode.LOOSENED_TOLERANCE)


def timing(provider: str, size: str, mean_us: float, clock: Any = "gpu", runs: int = 10) -> Timing:
    wobble = [1 + 0.004 * ((i * 7) % 10 - 4.5) / 4.5 for i in range(runs)]
    rows, cols = SHAPES[size]
    return Timing(
        provider=provider,
        size=size,
        shape=SHAPES[size],
        clock=clock,
        samples_us=tuple(mean_us * w for w in wobble),
        raw_us=tuple(mean_us * w + 2.3 for w in wobble) if clock == "gpu" else (),
        bytes=2 * 4 * rows * cols,
        flops=5 * rows * cols,
    )


def with_own_shape(value: Benchmark, size: str = "8192x151936") -> Benchmark:
    """Add a shape of the user, at which torch takes 1.8 ms."""
    shape = tuple(int(n) for n in size.split("x"))
    first = {p: timing(p, "large", 1800.0 / (i + 1)) for i, p in enumerate(value.providers)}
    own = {p: t.evolve(size=size, shape=shape) for p, t in first.items()}
    pairs = [comparison(own[v], own["torch"]) for v in value.versions]
    return value.evolve(
        sizes=(*value.sizes, size),
        timings=(*value.timings, *own.values()),
        comparisons=(*value.comparisons, *pairs),
    )


def comparison(candidate: Timing, baseline: Timing, threshold: float = 0.01) -> Comparison:
    interval = stats.paired_speedup(candidate.samples_us, baseline.samples_us)
    low, high = interval.low * 0.97, interval.high * 1.03
    return Comparison(
        candidate=candidate.provider,
        baseline=baseline.provider,
        size=candidate.size,
        ratio=interval.middle,
        low=low,
        high=high,
        threshold=threshold,
        rounds=len(candidate.samples_us),
        verdict=stats.verdict(stats.Interval(interval.middle, low, high), 0.04),
    )


def _versions(n: int) -> tuple[str, ...]:
    return tuple(TIMES_US)[1 : n + 1]


def benchmark(n_versions: int = 2, **changes: Any) -> Benchmark:
    versions = _versions(n_versions)
    providers = ("torch", *versions)
    timings = {
        (p, size): timing(p, size, TIMES_US[p][i])
        for p in providers
        for i, size in enumerate(SHAPES)
    }
    pairs = [(v, "torch") for v in versions] + list(zip(versions[1:], versions, strict=False))
    compared = [comparison(timings[a, size], timings[b, size]) for size in SHAPES for a, b in pairs]
    values: dict[str, Any] = {
        "op": "softmax",
        "status": Status.PASSED,
        "versions": versions,
        "sha256s": (sha256(SOURCE),) * n_versions,
        "providers": providers,
        "sizes": tuple(SHAPES),
        "runs": 10,
        "dtype": "float32",
        "clock": "gpu",
        "timings": tuple(timings.values()),
        "comparisons": tuple(compared),
        "controls": tuple(control(size) for size in SHAPES),
        "floor_us": 2.8,
        "empty_kernel_us": 0.54,
        "copy_gbps": 4180.0,
        "environment": GPU,
        "seed": 5,
        "duration_s": 0.3,
    }
    return Benchmark(**values | changes)


def control(size: str, ratio: float = 1.0, verdict: Any = "same") -> Comparison:
    return Comparison(
        candidate="torch",
        baseline="torch",
        size=size,
        ratio=ratio,
        low=ratio - 0.006,
        high=ratio + 0.007,
        threshold=0.01,
        rounds=10,
        verdict=verdict,
    )


def many_versions(n: int, **changes: Any) -> Benchmark:
    """Return n versions; their times at every size are torch's over 0.98, 1.02, 0.96, 1.04, ..."""
    versions = tuple(f"v{i}_tried" for i in range(1, n + 1))
    factors = {f"v{i}_tried": 1 - 0.01 * (2 * (i % 2) - 1) * (i + 1) for i in range(1, n + 1)}
    torch = {
        size: timing("torch", size, us) for size, us in zip(SHAPES, TIMES_US["torch"], strict=True)
    }
    own = {
        (v, size): timing(v, size, torch[size].mean_us / factors[v])
        for v in versions
        for size in SHAPES
    }
    values = {
        "versions": versions,
        "sha256s": tuple(sha256(v) for v in versions),
        "providers": ("torch", *versions),
        "timings": (*torch.values(), *own.values()),
        "comparisons": tuple(comparison(own[v, s], torch[s]) for v, s in own),
    }
    return benchmark(1, **values | changes)


def interpreter_benchmark(n_versions: int = 2, **changes: Any) -> Benchmark:
    versions = _versions(n_versions)
    sizes = {"small": 2.1e5, "medium": 9.3e5}
    values: dict[str, Any] = {
        "clock": "interpreter",
        "runs": 3,
        "providers": ("torch", *versions),
        "timings": tuple(
            timing(p, size, us * (1 - 0.05 * i), "interpreter", 3)
            for i, p in enumerate(("torch", *versions))
            for size, us in sizes.items()
        ),
        "comparisons": (),
        "controls": (),
        "not_timed": (
            NotTimed(size="large", reason="over the budget of the interpreter", estimate_s=41.0),
        ),
        "floor_us": None,
        "empty_kernel_us": None,
        "copy_gbps": None,
        "environment": CPU,
        "badges": (Badge.of(BadgeCode.INTERPRETER),),
    }
    return benchmark(n_versions, **values | changes)


def with_discards(value: Benchmark) -> Benchmark:
    first = value.timings[0].evolve(discards=(Discard(reason="the gate opened early", count=3),))
    return value.evolve(timings=(first, *value.timings[1:]))
