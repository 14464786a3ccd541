"""Compare net times with CUPTI's spans of the same calls, in a separate process."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from inprocess import OPS, bench, four, right

SHAPES = {"small": 256, "medium": 1024, "large": 4096}
GATE, FLUSH, COPY = "spin_kernel", "reduce_kernel", "Memcpy DtoD"  # in the profiler's names
TINY = "a tiny kernel"
NEAR_US, NEAR = 0.15, 0.03  # of CUPTI's span, whichever is larger


def by_cupti(folder: Path) -> dict[str, Any]:
    """Return net times and CUPTI's spans of the same calls, microseconds, and the protocol's GPU work.

    A separate process runs the same benchmarks with the profiler attached.
    """
    from triton_magics.harness.timing import bench_job as worker

    figures: dict[str, Any] = {}
    for op in OPS:
        calls: list[tuple[str, float]] = []
        worker._CALIBRATIONS.clear()  # a session of the profiler can change the timer's overhead
        with named_calls(calls):
            benchmark, events = profile_events(
                partial(bench, op, (right(folder, op),), seed=1, budget=0.0)
            )
        spans = spans_us(events)
        assert len(spans) == len(calls), (len(spans), len(calls))
        by_name: dict[str, list[tuple[float, float]]] = {}
        for (name, raw), span in zip(calls, spans, strict=True):
            by_name.setdefault(name, []).append((span, raw - span))
        for t in benchmark.timings:
            cupti_us, added_us = zip(*by_name[f"{t.provider} {t.size}"], strict=True)
            figures[f"{op} {t.provider} {t.size}"] = {
                "net us": t.median_us, "CUPTI us": statistics.median(cupti_us),
                "added us": statistics.median(added_us), "calibrated us": benchmark.timer_us,
            }  # fmt: skip
    refs = four(folder)
    bench("softmax", refs, seed=1, budget=0.0)
    _, events = profile_events(partial(bench, "softmax", refs, seed=2, budget=0.0))
    gates = sum(e.time_range.end - e.time_range.start for e in events if "spin_kernel" in e.name)
    whole = sum(e.time_range.end - e.time_range.start for e in events)
    return {"calls": figures, "work s": (whole - gates) / 1e6, "gates s": gates / 1e6}


def profile_events(act: Any) -> tuple[Any, list[Any]]:
    """Return the function's result and the GPU's events in order."""
    import torch

    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        result = act()
    events = [e for e in profile.events() if e.device_type == torch.autograd.DeviceType.CUDA]
    return result, sorted(events, key=lambda e: e.time_range.start)


@contextmanager
def named_calls(calls: list[tuple[str, float]]) -> Iterator[None]:
    """Append the provider and raw time of every timed call in the block to `calls`."""
    from triton_magics.harness.timing import bench_job as worker

    plain = worker.TIMERS["gated"]

    class RecordingTimer(plain):  # type: ignore[misc, valid-type]
        def _time_call(self, call: Any, **options: Any) -> Any:
            tried, closed = super()._time_call(call, **options)
            calls.append((TINY if call.gate_key is None else label_call(call), tried.raw_us))
            return tried, closed

    def label_call(call: Any) -> str:
        closure = dict(
            zip(call.function.__code__.co_freevars, call.function.__closure__, strict=True)
        )
        rows = closure["inputs"].cell_contents[0].shape[0]
        size = next(s for s, n in SHAPES.items() if rows == n)
        return f"{names[call.gate_key]} {size}"

    providers = worker.make_providers
    names: dict[Any, str] = {}

    def make_named_providers(*args: Any) -> Any:
        named = tuple(replace(p, call=partial(p.call)) for p in providers(*args))
        names.update({p.call: p.name for p in named})
        return named

    worker.TIMERS["gated"], worker.make_providers = RecordingTimer, make_named_providers
    try:
        yield
    finally:
        worker.TIMERS["gated"], worker.make_providers = plain, providers


def spans_us(events: list[Any]) -> list[float]:
    """Return the span of every gated call, from the first kernel's start to the last one's end.

    No markers are added, because work beside a call changes its time. A call's kernels are between
    the end of the flush, which is a reduction, and the copy of its output, if there is one.
    """
    spans, inside, flushed = [], [], False
    for event in [*events, None]:
        if event is None or GATE in event.name:
            if inside:
                spans.append(max(e.time_range.end for e in inside) - inside[0].time_range.start)
            inside, flushed = [], False
        elif flushed is True and COPY in event.name:
            flushed = None
        elif flushed:
            inside.append(event)
        elif flushed is False:
            flushed = FLUSH in event.name
    return spans


def against_cupti(folder: Path, calls: dict[str, Any]) -> list[dict[str, Any]]:
    """Compare net times with CUPTI's spans of the same calls, and with net times of this process."""
    from triton_magics.harness.timing import bench_job as worker

    worker._CALIBRATIONS.clear()  # the other process's profiler was on this GPU too
    rows = []
    for op in OPS:
        benchmark = bench(op, (right(folder, op),), seed=1, budget=0.0)
        for timing in benchmark.timings:
            key = f"{op} {timing.provider} {timing.size}"
            net, cupti = calls[key]["net us"], calls[key]["CUPTI us"]
            near = max(NEAR_US, NEAR * cupti)
            rows.append(
                {
                    "what": key, "CUPTI us": cupti, "net us": net, "difference us": net - cupti,
                    "within": abs(net - cupti) <= near,
                    "added us": calls[key]["added us"], "calibrated us": calls[key]["calibrated us"],
                    "net us, no CUPTI": timing.median_us,
                    "its difference us": timing.median_us - cupti,
                    "within too": abs(timing.median_us - cupti) <= near,
                }
            )  # fmt: skip
    return rows


@contextmanager
def beside(folder: Path, *, with_profiler: bool) -> Iterator[Callable[[], dict[str, Any]]]:
    """Start a process with the profiler, which imports modules in the block.

    Yields:
        A function that starts its measurement, waits, and returns the results.
    """
    path = folder / "cupti.json"
    command = [sys.executable, __file__, str(folder), str(path)]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, text=True) if with_profiler else None

    def read_results() -> dict[str, Any]:
        assert child is not None
        child.communicate("begin\n", timeout=120)
        assert child.returncode == 0
        results: dict[str, Any] = json.loads(path.read_text())
        return results

    try:
        yield read_results
    finally:
        if child:
            child.kill()


if __name__ == "__main__":
    import triton_magics.harness.timing.bench_job  # noqa: F401

    sys.stdin.readline()
    Path(sys.argv[2]).write_text(json.dumps(by_cupti(Path(sys.argv[1]))))
