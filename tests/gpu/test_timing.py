"""Tests of the timers, the census and the self-test on a GPU."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import torch
import triton
import triton.language as tl

from triton_magics import operators
from triton_magics.execution.local import gpu_detection
from triton_magics.harness.timers.gated_timer import GatedTimer, TimedCall, UnstableTiming
from triton_magics.harness.timers.persisting_l2 import PersistingL2
from triton_magics.harness.timing.input_pool import POISONED_BLOCKS, InputPool, timing_case
from triton_magics.lab import Lab
from triton_magics.model import Status

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(
        gpu_detection.detect() != "gpu", reason="no NVIDIA GPU with a CUDA build of torch"
    ),
]
SOFTMAX = (Path(__file__).parent.parent / "faults" / "kernels" / "softmax_right.py").read_text()
SYNCHRONIZES = SOFTMAX.replace(
    "    return out", "    torch.cuda.current_stream().synchronize()\n    return out"
)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with Lab(tmp_path_factory.mktemp("timing")) as lab:
        lab.write("softmax", "v1", SOFTMAX)
        lab.validate("softmax", "v1", plan="quick", dtypes=["float32"])
        lab.write("softmax", "v2", SYNCHRONIZES)
        lab.validate("softmax", "v2", plan="quick", dtypes=["float32"])
        yield lab


def test_graph_timer_excludes_launch_overhead(lab: Lab) -> None:
    gated = lab.bench("softmax", "v1", budget=0.0)
    graph = lab.bench("softmax", "v1", timer="graph", budget=0.0)
    launch = lab.bench("softmax", "v1", timer="launch", budget=0.0)
    assert [b.clock for b in (gated, graph, launch)] == ["gpu", "graph", "launch"]
    assert {t.clock for t in graph.timings} == {"graph"}
    for size in gated.sizes:
        by_gate, in_graph, by_host = (b.timing("v1", size) for b in (gated, graph, launch))
        assert in_graph.mean_us == pytest.approx(by_gate.mean_us, rel=0.25, abs=1.0)
        assert by_host.mean_us > by_gate.mean_us + 5


def test_failed_capture_falls_back_to_the_gated_timer(lab: Lab) -> None:
    benchmark = lab.bench("softmax", "v1", "v2", timer="graph", sizes=("small",), budget=0.0)
    assert benchmark.status is Status.PASSED
    assert {t.clock for t in benchmark.timings} == {"gpu"}
    assert any(
        "v2_tiling can't be captured in a CUDA graph" in note for note in benchmark.conditions
    )
    assert benchmark.timing("v1", "small") is not None
    (missing,) = benchmark.not_timed  # its synchronization waits for the gate
    assert missing.provider == "v2_tiling"
    assert "slower than the gate" in missing.reason


def test_census_profiler_does_not_affect_the_next_benchmark(
    lab: Lab,
) -> None:
    benchmark = lab.bench("softmax", "v1", census=True, budget=0.0)
    torchs, own = benchmark.census
    assert [k.name for k in own.kernels] == ["softmax_kernel"]
    assert (own.triton_share, len(own.streams)) == (1.0, 1)
    assert torchs.triton_share == 0.0
    assert lab.bench("softmax", "v1", budget=0.0).census == ()


def test_self_test_passes(lab: Lab) -> None:
    result = lab.selftest()
    assert {c.name: c.outcome for c in result.checks if not c.passed} == {}
    assert len(result.checks) == 6
    assert result.passed


def test_small_outputs_use_many_addresses() -> None:
    op = operators.load("softmax")
    case = timing_case(op, "small", "float32", 1)
    input_pool = InputPool(op, case, torch.device("cuda", 0), n=2, small=8)
    addresses = set()
    for call in input_pool.make_calls(op.reference, 3 * POISONED_BLOCKS):
        call.before_gate()
        call.fill_inputs()
        addresses.add(call.function().data_ptr())
    assert len(addresses) >= POISONED_BLOCKS


@pytest.mark.parametrize("waits_us", [0, 20, 50, 100, 200, 500])
@pytest.mark.parametrize("cold", [True, False])
def test_work_on_another_stream_is_detected(cold: bool, waits_us: int) -> None:
    op, l2_bytes = operators.load("softmax"), torch.cuda.get_device_properties(0).L2_cache_size
    input_pool = InputPool(
        op, timing_case(op, "small", "float32", 1), torch.device("cuda", 0), n=2, small=8
    )
    timer, stream = GatedTimer(l2_bytes, cold=cold), torch.cuda.Stream()

    def aside(x: torch.Tensor) -> torch.Tensor:
        start_s = time.perf_counter()
        while 1e6 * (time.perf_counter() - start_s) < waits_us:
            pass
        with torch.cuda.stream(stream):
            return op.reference(x)

    right: list[bool] = []
    for _ in range(3):
        calls = input_pool.make_calls(aside, 12)
        for call, one in zip(calls, timer.time_once(calls, range(12)), strict=True):
            if one.reason is None:
                right.append(input_pool.check_outputs([one.value], [call]) is None)
    assert len(right) > 12
    assert sum(right) <= len(right) // 12  # a launch while the gate opens may see the contents


def test_work_on_a_stream_left_current_is_detected() -> None:
    op, l2_bytes = operators.load("softmax"), torch.cuda.get_device_properties(0).L2_cache_size
    input_pool = InputPool(
        op, timing_case(op, "small", "float32", 1), torch.device("cuda", 0), n=2, small=8
    )
    own = torch.cuda.current_stream()
    timer, stream = GatedTimer(l2_bytes, cold=True), torch.cuda.Stream()

    def leaves_another(x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        stream.wait_stream(torch.cuda.current_stream())
        torch.cuda.set_stream(stream)
        torch.cuda._sleep(1_000_000)
        return out.copy_(op.reference(x))

    for seed in range(3):
        input_pool.refill(seed)
        calls = input_pool.make_calls(leaves_another, 12)
        attempts = timer.time_once(calls, range(12))
        assert torch.cuda.current_stream() == own
        pairs = zip(attempts, calls, strict=True)
        right = [call for one, call in pairs if not input_pool.check_outputs([one.value], [call])]
        assert not right


@triton.jit
def read(x_ptr, out_ptr, BLOCK: tl.constexpr, POLICY: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, eviction_policy=POLICY)
    tl.store(out_ptr + tl.program_id(0), tl.sum(x, axis=0))


def test_lines_that_a_kernel_keeps_in_the_l2_are_flushed() -> None:
    x = torch.randn(2 * 2**20, device="cuda")  # 8 MiB: the default set-aside of an H100
    out = torch.empty(x.numel() // 4096, device="cuda")
    timer = GatedTimer(torch.cuda.get_device_properties(0).L2_cache_size, cold=True)

    def median_us(policy: str) -> float:
        call = TimedCall(lambda: read[(out.numel(),)](x, out, BLOCK=4096, POLICY=policy))
        call.function()  # compiles it
        torch.cuda.synchronize()
        times = []
        for _ in range(40):
            with suppress(UnstableTiming):  # its gate is calibrated by then
                times.append(timer.run([call])[0].raw_us)
        return statistics.median(times[4:])

    normal = median_us("")
    assert median_us("evict_last") == pytest.approx(normal, rel=0.06)
    assert median_us("evict_first") == pytest.approx(normal, rel=0.06)
    assert PersistingL2().limit_bytes == 0


def test_limit_that_a_version_sets_is_reset() -> None:
    persisting = PersistingL2()
    persisting.reset()
    assert persisting.limit_bytes == 0
    persisting._set_limit(6, 2**20)
    assert persisting.limit_bytes > 0
    persisting.reset()
    assert persisting.limit_bytes == 0


CACHES = (
    SOFTMAX
    + """

right = triton_softmax
cache = {}


def triton_softmax(x):
    key = KEY
    if key not in cache or x.numel() < 2**20:  # a validation calls larger ones only once
        cache[key] = right(x)
    return cache[key].clone()
"""
)


@pytest.mark.parametrize(
    ("key", "code"),
    [("x.shape", "cached"), ("(x.shape, x.data_ptr())", None), ("(x.shape, id(x))", None)],
)
def test_cached_answers_void_the_benchmark(lab: Lab, key: str, code: str | None) -> None:
    lab.write("softmax", "v3", CACHES.replace("KEY", key))
    assert lab.validate("softmax", "v3", plan="quick", dtypes=["float32"]).passed
    benchmark = lab.bench("softmax", "v3", budget=0.0)
    assert benchmark.status is Status.FAILED
    (culprit,) = benchmark.not_timed
    assert culprit.size == "medium"
    assert code is None or culprit.code == code
    assert benchmark.speedup("v3") is None


def test_right_versions_are_no_slower_on_new_contents(lab: Lab) -> None:
    for _ in range(3):
        assert lab.bench("softmax", "v1", budget=0.0).status is Status.PASSED
