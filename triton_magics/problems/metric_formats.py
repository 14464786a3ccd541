"""Times in the forms of other tools: values in, text out.

Sources: bencher.dev/docs/reference/bencher-metric-format (latency in nanoseconds);
github.com/benchmark-action/github-action-benchmark, `customSmallerIsBetter`;
flashinfer-bench, flashinfer_bench/data/trace.py.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from triton_magics import stats
from triton_magics.model import Benchmark, CaseStatus, Timing, Validation, short


class TimedVersion(NamedTuple):
    """One version at one size, with torch in the same session and its validation on a GPU."""

    time: str
    benchmark: Benchmark
    own: Timing
    torch: Timing
    validation: Validation | None

    @property
    def name(self) -> str:
        """Return `softmax/v2/large/float32`."""
        benchmark = self.benchmark
        parts = (benchmark.op, short(self.own.provider), self.own.size, benchmark.dtype)
        return "/".join(parts)


def bencher(rows: Sequence[TimedVersion]) -> str:
    """Return Bencher's metric format: latency in nanoseconds, and the speedup over torch."""
    table: dict[str, Any] = {}
    for row in rows:
        own = row.own
        table[row.name] = {
            "latency": {
                "value": round(own.mean_us * 1e3, 3),
                "lower_value": round(own.min_us * 1e3, 3),
                "upper_value": round(own.max_us * 1e3, 3),
            },
            "speedup-over-torch": _bounds(row),
        }
    return _to_json(table)


def _bounds(row: TimedVersion) -> dict[str, float]:
    n = min(len(row.own.samples_us), len(row.torch.samples_us))
    speedup = stats.paired_speedup(row.own.samples_us[:n], row.torch.samples_us[:n])
    return {
        "value": round(speedup.middle, 5),
        "lower_value": round(speedup.low, 5),
        "upper_value": round(speedup.high, 5),
    }


def github(rows: Sequence[TimedVersion]) -> str:
    """Return entries of the tool `customSmallerIsBetter`, microseconds."""
    return _to_json(
        [
            {
                "name": row.name,
                "unit": "us",
                "value": round(row.own.mean_us, 4),
                "range": f"± {(row.own.max_us - row.own.min_us) / 2:.4f}",
                "extra": f"torch {row.torch.mean_us:.4f} us\n{_environment_line(row)}",
            }
            for row in rows
        ]
    )


def _environment_line(row: TimedVersion) -> str:
    return row.benchmark.environment.line if row.benchmark.environment else ""


def trace(rows: Sequence[TimedVersion]) -> str:
    """Return a line of FlashInfer Trace for each time whose version passed a validation on a GPU.

    The definition has the op's name, the workload the name that `definition` writes.
    """
    lines = (_trace(row) for row in rows if row.validation is not None)
    return "".join(f"{json.dumps(line)}\n" for line in lines)


def _trace(row: TimedVersion) -> dict[str, Any]:
    benchmark, here = row.benchmark, row.benchmark.environment
    libraries = {} if here is None else {"torch": here.torch, "triton": here.triton}
    if here and here.cuda:
        libraries["cuda"] = here.cuda
    return {
        "definition": benchmark.op,
        "workload": {
            "uuid": f"{benchmark.op}-{row.own.size}",
            "axes": {f"d{i}": n for i, n in enumerate(row.own.shape)},
            "inputs": {},
        },
        "solution": f"{benchmark.op}_{row.own.provider}",
        "evaluation": {
            "status": "PASSED",
            "environment": {
                "hardware": here.device.replace(" ", "_") if here else "unknown",
                "libs": libraries,
            },
            "timestamp": row.time,
            "log": "",
            "correctness": _errors(row.validation),
            "performance": {
                "latency_ms": row.own.mean_us / 1e3,
                "reference_latency_ms": row.torch.mean_us / 1e3,
                "speedup_factor": row.torch.mean_us / row.own.mean_us,
            },
        },
    }


def _errors(validation: Validation | None) -> dict[str, Any]:
    """Return the largest absolute error of the passed cases; relative ones are not measured."""
    cases = [c for c in (validation.cases if validation else ()) if c.status is CaseStatus.PASSED]
    shares = [c.error_share for c in cases if c.error_share is not None]
    absolute = [c.max_abs_error for c in cases if c.max_abs_error is not None]
    return {
        "max_relative_error": "NaN",
        "max_absolute_error": max(absolute, default="NaN"),
        "extra": {"max_share_of_tolerance": max(shares, default=None)},
    }


def _to_json(value: Any) -> str:
    return f"{json.dumps(value, indent=2, ensure_ascii=False)}\n"


METRIC_FORMATS: Mapping[str, Callable[[Sequence[TimedVersion]], str]] = {
    "bencher": bencher,
    "github": github,
    "trace": trace,
}

__all__ = ["METRIC_FORMATS", "TimedVersion", "bencher", "github", "trace"]
