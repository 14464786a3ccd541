"""Net time beside the span of the same calls' kernels by CUPTI, in a process of its own."""

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
GAUGE = "a tiny kernel"
NEAR_US, NEAR = 0.15, 0.03  # of CUPTI's span, whichever is larger


def by_cupti(folder: Path) -> dict[str, Any]:
    """Net time and CUPTI's span of the same calls, microseconds; and the protocol's work.

    A process of its own makes the same benchmarks with the profiler attached.
    """
    from triton_magics.worker import bench as worker

    found: dict[str, Any] = {}
    for op in OPS:
        calls: list[tuple[str, float]] = []
        worker._GAUGED.clear()  # what the timer adds may be another in each session of the profiler
        with named_calls(calls):
            made, events = profiled(partial(bench, op, (right(folder, op),), seed=1, budget=0.0))
        spans = spans_us(events)
        assert len(spans) == len(calls), (len(spans), len(calls))
        by_name: dict[str, list[tuple[float, float]]] = {}
        for (name, raw), span in zip(calls, spans, strict=True):
            by_name.setdefault(name, []).append((span, raw - span))
        for t in made.timings:
            taken, added = zip(*by_name[f"{t.provider} {t.size}"], strict=True)
            found[f"{op} {t.provider} {t.size}"] = {
                "net us": t.median_us, "CUPTI us": statistics.median(taken),
                "added us": statistics.median(added), "gauged us": made.timer_us,
            }  # fmt: skip
    refs = four(folder)
    bench("softmax", refs, seed=1, budget=0.0)
    _, events = profiled(partial(bench, "softmax", refs, seed=2, budget=0.0))
    gates = sum(e.time_range.end - e.time_range.start for e in events if "spin_kernel" in e.name)
    whole = sum(e.time_range.end - e.time_range.start for e in events)
    return {"calls": found, "work s": (whole - gates) / 1e6, "gates s": gates / 1e6}


def profiled(act: Any) -> tuple[Any, list[Any]]:
    """What it gives, and what the GPU did meanwhile, in order."""
    import torch

    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        made = act()
    events = [e for e in profile.events() if e.device_type == torch.autograd.DeviceType.CUDA]
    return made, sorted(events, key=lambda e: e.time_range.start)


@contextmanager
def named_calls(calls: list[tuple[str, float]]) -> Iterator[None]:
    """`calls` gets who was called, and the raw time, of every call that is timed meanwhile."""
    from triton_magics.worker import bench as worker

    plain = worker.TIMERS["gated"]

    class Telling(plain):  # type: ignore[misc, valid-type]
        def _try(self, call: Any, **how: Any) -> Any:
            tried, closed = super()._try(call, **how)
            calls.append((GAUGE if call.of is None else called(call), tried.raw_us))
            return tried, closed

    def called(call: Any) -> str:
        bound = dict(zip(call.act.__code__.co_freevars, call.act.__closure__, strict=True))
        rows = bound["given"].cell_contents[0].shape[0]
        size = next(s for s, n in SHAPES.items() if rows == n)
        return f"{names[call.of]} {size}"

    providers = worker.providers
    names: dict[Any, str] = {}

    def named(*args: Any) -> Any:
        made = tuple(replace(p, call=partial(p.call)) for p in providers(*args))
        names.update({p.call: p.name for p in made})
        return made

    worker.TIMERS["gated"], worker.providers = Telling, named
    try:
        yield
    finally:
        worker.TIMERS["gated"], worker.providers = plain, providers


def spans_us(events: list[Any]) -> list[float]:
    """From the first kernel's start to the last one's end, of every call behind a gate.

    Nothing is put beside the calls to find them: work beside a call changes its time. A call lies
    between the end of the flush, which is a reduction, and the copy of its output, if there is one.
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
    """Net time beside CUPTI's span of the same calls; and net time without CUPTI, in this process."""
    from triton_magics.worker import bench as worker

    worker._GAUGED.clear()  # the other process's profiler was on this GPU too
    rows = []
    for op in OPS:
        made = bench(op, (right(folder, op),), seed=1, budget=0.0)
        for timing in made.timings:
            what = f"{op} {timing.provider} {timing.size}"
            net, cupti = calls[what]["net us"], calls[what]["CUPTI us"]
            near = max(NEAR_US, NEAR * cupti)
            rows.append(
                {
                    "what": what, "CUPTI us": cupti, "net us": net, "difference us": net - cupti,
                    "within": abs(net - cupti) <= near,
                    "added us": calls[what]["added us"], "gauged us": calls[what]["gauged us"],
                    "net us, no CUPTI": timing.median_us,
                    "its difference us": timing.median_us - cupti,
                    "within too": abs(timing.median_us - cupti) <= near,
                }
            )  # fmt: skip
    return rows


@contextmanager
def beside(folder: Path, *, wanted: bool) -> Iterator[Callable[[], dict[str, Any]]]:
    """A process with the profiler, which imports meanwhile and begins when it is asked.

    Gives what asks, waits for its end and tells what it has found.
    """
    path = folder / "cupti.json"
    command = [sys.executable, __file__, str(folder), str(path)]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, text=True) if wanted else None

    def told() -> dict[str, Any]:
        assert child is not None
        child.communicate("begin\n", timeout=120)
        assert child.returncode == 0
        found: dict[str, Any] = json.loads(path.read_text())
        return found

    try:
        yield told
    finally:
        if child:
            child.kill()


if __name__ == "__main__":
    import triton_magics.worker.bench  # noqa: F401

    sys.stdin.readline()
    Path(sys.argv[2]).write_text(json.dumps(by_cupti(Path(sys.argv[1]))))
