"""A version that tampers with clocks, or caches answers, has no time; a right one beside it has."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from triton_magics.config import Settings
from triton_magics.execution import LocalExecutor
from triton_magics.execution.job_refs import OpRef, VersionRef
from triton_magics.execution.job_requests import BenchJob
from triton_magics.model import Benchmark, Status

SOURCE = (
    Path(__file__).parents[1] / "kernels" / "classes" / "judge" / "softmax_namesake.py"
).read_text()
HEAD = "\nimport gc, sys, time\noriginal, now = triton_softmax, time.perf_counter\n"
FAST_CLOCK = """
def triton_softmax(x):
    time.perf_counter = lambda: 1e-3 * now()
    return original(x)
"""
# One call counts the programs, and two are timed: at the end nothing is replaced.
CLOCK_FOR_A_MOMENT = """
calls = 0

def triton_softmax(x):
    global calls
    calls += 1
    time.perf_counter = now
    out = original(x)
    if calls < 3:
        time.perf_counter = lambda: 1e-3 * now()
    return out
"""
FAST_MONOTONIC = """
real = time.monotonic
time.monotonic = lambda: 1e-3 * real()
"""
SLOW_TORCH = """
softmax = torch.softmax
torch.softmax = lambda *a, **k: [softmax(*a, **k) for _ in range(8)][-1]
"""
FORGES_ITS_SAMPLES = """
def triton_softmax(x):
    frame = sys._getframe()
    while frame:
        runs = frame.f_locals.get("self")
        if type(runs).__name__ == "InterpreterRuns":
            runs.samples_us[:] = [0.001 * us for us in runs.samples_us]
        frame = frame.f_back
    return original(x)
"""
LEAVES_EARLY = """
def triton_softmax(x):
    for runs in gc.get_objects():
        if type(runs).__name__ == "InterpreterRuns":
            runs._check = lambda *a: None
    return original(x) if x.numel() < 2**16 else torch.empty_like(x)
"""
CACHES = """
cache = {}

def triton_softmax(x):
    key = float(x[0, 0])
    if key not in cache:
        cache[key] = original(x)
    return cache[key].clone()
"""


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalExecutor]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_MAGICS_CACHE", str(tmp_path_factory.mktemp("cache")))
        engine = LocalExecutor(Settings(device="interpreter", standbys=1))
        yield engine
        engine.close()


def bench(engine: LocalExecutor, tail: str, runs: int = 2) -> Benchmark:
    """Time a version without a validation, which would refuse most of these."""
    source = SOURCE + (HEAD + tail if tail else "")
    version = VersionRef(
        version="v1_baseline", attempt=1, source=source, entry="triton_softmax", header_lines=0,
        sha256=hashlib.sha256(source.encode()).hexdigest(), cell_offset=1, shown_path="v1.py",
    )  # fmt: skip
    job = BenchJob(
        op=OpRef(name="softmax"), versions=(version,), sizes=("small",), runs=runs,
        dtype="float32", seed=7, budget_s=20.0,
    )  # fmt: skip
    answer = engine.submit(job).result(100).answer
    assert isinstance(answer, Benchmark), answer
    return answer


def test_a_right_version_has_a_time(engine: LocalExecutor) -> None:
    timed = bench(engine, "")
    assert timed.status is Status.PASSED, timed.message


@pytest.mark.in_turn
@pytest.mark.parametrize(
    ("tail", "word"),
    [
        pytest.param(FAST_CLOCK, "perf_counter", marks=pytest.mark.slow),
        pytest.param(FAST_MONOTONIC, "monotonic", marks=pytest.mark.slow),
        pytest.param(SLOW_TORCH, "softmax", marks=pytest.mark.slow),
        (FORGES_ITS_SAMPLES, "impossible time"),
        (LEAVES_EARLY, "right outputs of 2 timed calls"),
        (CACHES, "v1_baseline caches answers: at small"),
    ],
    ids=["clock", "monotonic", "slow torch", "samples", "check", "caches"],
)
def test_a_false_time_is_void(engine: LocalExecutor, tail: str, word: str) -> None:
    void = bench(engine, tail, runs=30 if tail == FORGES_ITS_SAMPLES else 2)
    assert void.status is Status.FAILED
    assert word in str(void.message)
    assert "v1_baseline" not in {timing.provider for timing in void.timings}


def test_a_clock_that_is_replaced_for_a_moment_changes_nothing(engine: LocalExecutor) -> None:
    (timing,) = bench(engine, CLOCK_FOR_A_MOMENT).timings
    assert timing.min_us > 1000  # 256 programs
