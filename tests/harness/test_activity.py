"""Tests of the kernels that CUPTI's activity records show, without counters."""

from __future__ import annotations

import gzip
import json
import statistics
from pathlib import Path

import pytest

from triton_magics.harness.profiling.activity import merge_calls, read_trace
from triton_magics.model import ProfiledKernel

# Written on an H200 by tests/benchmarks/record_traces.py.
RECORDED = Path(__file__).parents[1] / "fixtures" / "cupti_h200"

COPY = {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy DtoD", "ts": 90.0, "dur": 4.0, "args": {}}
SOFTMAX = {
    "ph": "X", "cat": "kernel", "name": "softmax_kernel", "ts": 100.0, "dur": 31.5,
    "args": {
        "stream": 7, "registers per thread": 54, "shared memory": 16,
        "grid": [4096, 1, 1], "block": [128, 1, 1],
    },
}  # fmt: skip
LAUNCH = {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": 80.0, "dur": 9.0}


def trace(*events: dict[str, object]) -> str:
    return json.dumps({"schemaVersion": 1, "traceEvents": list(events)})


def test_a_trace_has_the_kernels_and_copies_in_order() -> None:
    copy, softmax = read_trace(trace(SOFTMAX, LAUNCH, COPY), target=90, sms=132)
    assert (copy.name, copy.duration_us, copy.registers, copy.static) == (
        "Memcpy DtoD",
        4,
        None,
        (),
    )
    assert (softmax.grid, softmax.block, softmax.duration_us) == ((4096, 1, 1), (128, 1, 1), 31.5)
    assert (softmax.registers, softmax.shared_bytes) == (54, 16)
    assert softmax.theoretical_occupancy_pct == 56.25  # as ncu says of the same kernel
    assert softmax.waves == pytest.approx(3.4478, abs=1e-4)
    assert softmax.static == ("theoretical_occupancy_pct", "waves")


def test_a_gpu_without_known_limits_has_no_occupancy() -> None:
    (softmax,) = read_trace(trace(SOFTMAX), target=61, sms=20)
    assert (softmax.theoretical_occupancy_pct, softmax.waves, softmax.static) == (None, None, ())


def test_kernels_of_several_calls_have_their_median_time() -> None:
    calls = [
        read_trace(trace(SOFTMAX | {"dur": us}, COPY), target=90, sms=132) for us in (36, 30, 99)
    ]
    copy, softmax = merge_calls(calls)
    assert (copy.duration_us, softmax.duration_us) == (4, 36)
    assert (copy.share, softmax.share) == (0.1, 0.9)


def test_calls_that_run_other_kernels_do_not_count() -> None:
    calls = [read_trace(trace(*events), 90, 132) for events in ([SOFTMAX, COPY], [COPY], [COPY])]
    (copy,) = merge_calls(calls)
    assert (copy.duration_us, copy.share) == (4, 1)
    assert merge_calls([(), ()]) == ()


# ------------------------------------------------------------------ traces of a real GPU


def read_recorded(name: str) -> tuple[ProfiledKernel, ...]:
    text = gzip.decompress((RECORDED / f"{name}.json.gz").read_bytes()).decode()
    return tuple(read_trace(text, target=90, sms=132))


def test_a_recorded_kernel_has_the_compilers_figures() -> None:
    facts = json.loads((RECORDED / "facts.json").read_text())
    (compiled,) = facts["kernels"]
    (softmax,) = read_recorded("softmax")
    assert softmax.name == compiled["name"]
    assert softmax.registers == compiled["registers"]
    assert softmax.shared_bytes == compiled["shared_bytes"]
    assert softmax.block == (32 * compiled["num_warps"], 1, 1)
    assert softmax.duration_us < statistics.median(facts["softmax"]["events_us"])


def test_a_recorded_call_has_each_kernel_once_in_order() -> None:
    kinds = ("vectorized", "DtoD", "SoftM", "vectorized", "nvjet", "Memset", "reduce", "DtoH")
    several = read_recorded("several")
    assert [kind in kernel.name for kind, kernel in zip(kinds, several, strict=True)] == [True] * 8
    assert several[4].theoretical_occupancy_pct == 18.75  # one block of 384 threads
    assert read_recorded("nothing") == ()
