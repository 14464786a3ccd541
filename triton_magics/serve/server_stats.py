"""Figures of a server since its start: as JSON, and in the text form of Prometheus."""

from __future__ import annotations

import statistics
import threading
import time
from collections import Counter, defaultdict, deque
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from triton_magics.serve.job_model import JobPhase, JobView
from triton_magics.serve.job_service import JobService

KEPT = 1_000  # newest durations
_GROUPS = {
    "compilation": JobPhase.COMPILING,
    "validation": JobPhase.VALIDATING,
    "profiling": JobPhase.PROFILING,
}


class Durations:
    """The number of durations, and the distribution of the newest, seconds."""

    def __init__(self) -> None:
        self.total = 0
        self.sum_s = 0.0
        self._newest: deque[float] = deque(maxlen=KEPT)

    def add(self, seconds: float) -> None:
        """Count a duration."""
        self.total += 1
        self.sum_s += seconds
        self._newest.append(seconds)

    def as_json(self) -> dict[str, float | None]:
        """Return min, mean, max, p50 and p95; None where there is none."""
        newest = sorted(self._newest)
        if not newest:
            return dict.fromkeys(("min", "mean", "max", "p50", "p95"))
        return {
            "min": newest[0],
            "mean": statistics.fmean(newest),
            "max": newest[-1],
            "p50": newest[len(newest) // 2],
            "p95": newest[min(len(newest) * 95 // 100, len(newest) - 1)],
        }


class ServerStats:
    """Counts the jobs of a service as they end; safe in any thread."""

    def __init__(self, service: JobService) -> None:
        self._service = service
        self._lock = threading.Lock()
        self._groups = {name: Durations() for name in _GROUPS}
        self._failures: Counter[str] = Counter()
        self._states: Counter[str] = Counter()
        self._wait, self._whole = Durations(), Durations()
        self._busy_s: defaultdict[str, float] = defaultdict(float)
        service.on_end.append(self._count)

    def _count(self, view: JobView) -> None:
        spans = dict(phase_spans(view))
        value = view.value if isinstance(view.value, dict) else {}
        failed = view.fault is not None or value.get("status") not in (None, "passed", "no_gpu")
        last = list(spans)[-1] if spans else ""
        if value.get("kernel_exec_result", {}).get("compiled") and last == "compiling":
            failed = False  # it was called, in the same phase
        with self._lock:
            self._states[view.state.value] += 1
            self._whole.add(view.duration_s or 0.0)
            self._wait.add(spans.pop(JobPhase.QUEUED.value, 0.0))
            self._busy_s[view.device or "default"] += sum(spans.values())
            for name, phase in _GROUPS.items():
                if phase.value in spans:
                    self._groups[name].add(spans[phase.value])
                    self._failures[name] += failed and phase.value == last

    def as_json(self) -> dict[str, Any]:
        """Return all figures; a duration is in seconds, None where nothing was measured."""
        uptime_s = time.time() - self._service.started_at
        calls = self._service.lab.jobs.calls
        with self._lock:
            n_ended = self._whole.total
            groups = {
                name: {
                    "total": durations.total,
                    "failed": self._failures[name],
                    "ok": durations.total - self._failures[name],
                    "seconds": durations.as_json(),
                }
                for name, durations in self._groups.items()
            }
            busy = {name: seconds / uptime_s for name, seconds in self._busy_s.items()}
            waiting = sum(call.state == "queued" for call in calls)
            return groups | {
                "gpu": {
                    "acquisitions": n_ended,
                    "wait_seconds": self._wait.as_json(),
                    "busy_share": busy,
                },
                "throughput": {
                    "uptime_s": uptime_s,
                    "jobs_per_minute": 60 * n_ended / uptime_s,
                    "end_to_end_seconds": self._whole.as_json(),
                },
                "jobs": {
                    "ended": dict(self._states),
                    "waiting": waiting,
                    "running": len(calls) - waiting,
                },
            }


def phase_spans(view: JobView) -> Iterator[tuple[str, float]]:
    """Yield each phase of a job that has ended with its duration, seconds, in their order."""
    starts = sorted(view.times.items(), key=lambda item: item[1])
    for (phase, start), (_, end) in pairwise(starts):
        yield phase, end - start


def prometheus_text(figures: dict[str, Any]) -> str:
    """Return the figures in Prometheus' text form, version 0.0.4."""
    jobs, whole = figures["jobs"], figures["throughput"]
    rows: list[tuple[str, str, dict[str, str], float | None]] = [
        ("uptime_seconds", "gauge", {}, whole["uptime_s"]),
        ("jobs_waiting", "gauge", {}, jobs["waiting"]),
        ("jobs_running", "gauge", {}, jobs["running"]),
    ]
    rows += [("jobs_total", "counter", {"state": s}, n) for s, n in jobs["ended"].items()]
    for name in _GROUPS:
        for ending in ("ok", "failed"):
            labels = {"step": name, "ending": ending}
            rows.append(("steps_total", "counter", labels, figures[name][ending]))
    rows += [
        ("busy_share", "gauge", {"device": d}, n) for d, n in figures["gpu"]["busy_share"].items()
    ]
    spans = {"job": whole["end_to_end_seconds"], "wait": figures["gpu"]["wait_seconds"]}
    spans |= {name: figures[name]["seconds"] for name in _GROUPS}
    for span, values in spans.items():
        for quantile, key in (("0.5", "p50"), ("0.95", "p95")):
            labels = {"span": span, "quantile": quantile}
            rows.append(("duration_seconds", "gauge", labels, values[key]))
    return "".join(_lines(rows))


def _lines(rows: list[tuple[str, str, dict[str, str], float | None]]) -> Iterator[str]:
    previous = ""
    for name, kind, labels, value in rows:
        if value is None:
            continue
        if name != previous:
            yield f"# TYPE triton_magics_{name} {kind}\n"
            previous = name
        inner = ",".join(f'{k}="{_escape(v)}"' for k, v in labels.items())
        yield f"triton_magics_{name}{f'{{{inner}}}' if inner else ''} {value!r}\n"


def _escape(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


__all__ = ["ServerStats", "phase_spans", "prometheus_text"]
