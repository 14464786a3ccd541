"""Several versions with their attempts: the difference of two, and the log of all."""

from __future__ import annotations

from typing import Any

from triton_magics.model import Benchmark, Correction, Difference, Side
from triton_magics.rendering.log_document import LogInput, VersionLog
from triton_magics.verbs._phrase import as_magic

from .benchmarks import benchmark
from .kernels import FACTS, GPU, SOURCE, TECHNIQUES, compilation, sha256, source
from .states import best, op_state
from .validations import validation, wrong_validation

BROKEN = SOURCE.replace(', other=-float("inf")', "")
SOURCES = {
    "v1_baseline": SOURCE,
    "v2_tiling": SOURCE.replace("triton.next_power_of_2(x.shape[1])", "1024").replace(
        "BLOCK_SIZE=block", "BLOCK_SIZE=1024"
    ),
    "v3_coalesced": SOURCE.replace("row = tl", "row = 0 + tl"),
}


def difference(**changes: Any) -> Difference:
    """Return the corrected v1 and v2, both right, timed together."""
    sides = {
        name: Side(source=source(name, code=code), validation=validation(name, sha256=sha256(code)))
        for name, code in list(SOURCES.items())[:2]
    }
    values = {"op": "softmax", "before": sides["v1_baseline"], "after": sides["v2_tiling"]}
    return Difference(**values | {"benchmark": _benchmark_of(2)} | changes)


def correction() -> Correction:
    """Return the broken v1 with `other=` in its load."""
    broken = source(code=BROKEN)
    line = next(n for n, text in enumerate(SOURCE.splitlines(), 1) if "other=" in text)
    return Correction(source=broken, line=broken.file_line(line), text=SOURCE)


def log_input(n_versions: int = 2, **changes: Any) -> LogInput:
    """Return a log: v1 needed two attempts, all versions are right, v2 is the one to ship."""
    names = list(SOURCES)[:n_versions]
    measured = _benchmark_of(n_versions)
    versions = tuple(_version_log(name, measured) for name in names)
    values: dict[str, Any] = {
        "facts": FACTS,
        "techniques": TECHNIQUES,
        "state": op_state(n_versions),
        "versions": versions,
        "best": best(source=source("v2_tiling", code=SOURCES["v2_tiling"])),
        "environment": GPU,
        "phrase": as_magic,
    }
    return LogInput(**values | changes)


def _benchmark_of(n_versions: int) -> Benchmark:
    shas = tuple(sha256(code) for code in list(SOURCES.values())[:n_versions])
    return benchmark(n_versions, sha256s=shas)


def _version_log(name: str, measured: Benchmark) -> VersionLog:
    code = SOURCES[name]
    right = validation(name, sha256=sha256(code), compilation=compilation(name))
    if name != "v1_baseline":
        return VersionLog(name, (source(name, code=code),), (right,), (), measured, "Tiling")
    wrong = wrong_validation(sha256=sha256(BROKEN))
    attempts = (source(name, 1, BROKEN), source(name, 2, code))
    return VersionLog(name, attempts, (wrong, right), (), measured, "no optimisation")
