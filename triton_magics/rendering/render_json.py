"""Render the result of a verb as JSON for scripts: its fields, and the figures derived of them.

The object has `schema_version`, `derived` and the fields of the value. A result that is no object
is `items` of one. `SCHEMA_VERSION` is raised where a field is renamed, removed or changes its
meaning; a new field does not raise it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from pydantic_core import to_json

from triton_magics.model import Benchmark, Diagnosis, Sweep, Timing, Validation, Value

SCHEMA_VERSION = 1
_Figures = dict[str, Any]


def to_json_text(value: object) -> str:
    """Return the JSON text of a verb's result, indented; infinities and NaN are texts."""
    return json.dumps(json_object(value), indent=2, ensure_ascii=False)


def json_object(value: object) -> dict[str, Any]:
    """Return the result of a verb as one JSON object."""
    plain = json.loads(to_json(value, inf_nan_mode="strings"))
    if not isinstance(value, Value):
        fields = plain if isinstance(plain, Mapping) else {"items": plain}
        return {"schema_version": SCHEMA_VERSION, **fields}
    return {"schema_version": SCHEMA_VERSION, "derived": compute_derived(value), **plain}


def compute_derived(value: Value) -> _Figures:
    """Return the figures that a value derives of its fields, by name; units are in the names."""
    special = next((make for kind, make in _SPECIAL.items() if isinstance(value, kind)), None)
    return {**_scalars(value), **(special(value) if special else {})}


def _scalars(value: Value) -> _Figures:
    """Return each property that is a text, a number, a truth value or None."""
    names = [n for n in dir(type(value)) if isinstance(getattr(type(value), n), property)]
    figures = {n: getattr(value, n) for n in names if not n.startswith(("_", "model_"))}
    return {n: f for n, f in figures.items() if f is None or isinstance(f, str | int | float)}


def _validation(value: Validation) -> _Figures:
    return {
        "cases_run": len(value.run_cases),
        "cases_passed": len(value.run_cases) - len(value.failed_cases),
        "cases_not_run": len(value.not_run),
    }


def _benchmark(value: Benchmark) -> _Figures:
    return {"providers": {name: _provider(value, name) for name in value.providers}}


def _provider(value: Benchmark, name: str) -> _Figures:
    timings = [t for t in value.timings if t.provider == name]
    return {
        "final_us": value.final_us(name),
        "speedup": value.speedup(name),
        "geomean_speedup": value.geomean_speedup(name),
        "sizes": {
            t.size: {**_timing(t), "speedup": value.size_speedup(name, t.size)} for t in timings
        },
    }


def _timing(value: Timing) -> _Figures:
    return _scalars(value)


def _sweep(value: Sweep) -> _Figures:
    best = value.best
    if best is None or best.timing is None:
        return {"best": None}
    speedup = value.speedup(best)
    return {"best": {"label": best.label, "mean_us": best.timing.mean_us, "speedup": speedup}}


def _diagnosis(value: Diagnosis) -> _Figures:
    return {"n_problems": len(value.problems), "passed": value.worst != "bad"}


_SPECIAL: dict[type, Callable[[Any], _Figures]] = {
    Validation: _validation,
    Benchmark: _benchmark,
    Sweep: _sweep,
    Diagnosis: _diagnosis,
}
