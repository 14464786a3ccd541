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
MARK = "mark_kernel"
NEAR_US, NEAR = 0.15, 0.03  # of CUPTI's span, whichever is larger


def by_cupti(folder: Path) -> dict[str, Any]:
    """Net time and CUPTI's span of the same calls, microseconds; and the protocol's work.

    A process of its own makes the same benchmarks with the profiler attached.
    """
    from triton_magics.worker import bench as worker

    found: dict[str, Any] = {}
    for op in OPS:
        calls: list[str] = []
        worker._GAUGED.clear()  # what the timer adds is another in each session of the profiler
        with marked(calls):
            made, events = profiled(partial(bench, op, (right(folder, op),), seed=1, budget=0.0))
        spans = spans_us(events)
        assert len(spans) == len(calls), (len(spans), len(calls))
        by_name: dict[str, list[float]] = {}
        for name, span in zip(calls, spans, strict=True):
            by_name.setdefault(name, []).append(span)
        for t in made.timings:
            spans = by_name[f"{t.provider} {t.size}"]
            found[f"{op} {t.provider} {t.size}"] = {
                "net us": t.median_us, "CUPTI us": statistics.median(spans),
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
def marked(calls: list[str]) -> Iterator[None]:
    """Benchmarks whose every timed call lies between two marks, outside of its events.

    `calls` gets who was called.
    """
    import torch
    from kernels.mark import mark_kernel

    from triton_magics.worker import bench as worker

    plain = worker.TIMERS["gated"]
    nothing = torch.zeros(16, device="cuda")

    def mark() -> None:
        mark_kernel[(1,)](nothing, BLOCK_SIZE=16)

    mark()  # compiled by now

    class Marked(plain):  # type: ignore[misc, valid-type]
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            flush = self._flush
            self._flush = lambda: (flush(), mark())
            self.gauging = False

        def gauged(self, own_us: Any) -> Any:
            self.gauging = True
            try:
                return super().gauged(own_us)
            finally:
                self.gauging = False

        def _try(self, call: Any, *, first: bool) -> Any:
            kept = call.kept
            calls.append("gauge" if self.gauging else called(call))
            return super()._try(replace(call, kept=lambda v: (mark(), kept(v))[1]), first=first)

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

    worker.TIMERS["gated"], worker.providers = Marked, named
    try:
        yield
    finally:
        worker.TIMERS["gated"], worker.providers = plain, providers


def spans_us(events: list[Any]) -> list[float]:
    """From the first kernel's start to the last one's end, between pairs of marks."""
    spans, inside = [], None
    for event in events:
        if event.name != MARK:
            if inside is not None:
                inside += [event.time_range.start, event.time_range.end]
        elif inside is None:
            inside = []
        else:
            spans.append(max(inside) - min(inside))
            inside = None
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
    import kernels.mark  # noqa: F401

    import triton_magics.worker.bench  # noqa: F401

    sys.stdin.readline()
    Path(sys.argv[2]).write_text(json.dumps(by_cupti(Path(sys.argv[1]))))
