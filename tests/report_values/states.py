"""States of an op and a lab, and results of the smaller verbs."""

from __future__ import annotations

from typing import Any

from triton_magics.model import (
    Best,
    Case,
    CaseResult,
    CaseStatus,
    Coverage,
    Export,
    Gap,
    GapCode,
    LabState,
    OpPage,
    OpResult,
    OpState,
    Pause,
    Plan,
    Reference,
    Report,
    RunResult,
    Setback,
    Status,
    Summary,
    Template,
    TensorSummary,
    VersionState,
    version_name,
)
from triton_magics.next_step import NextStep

from .kernels import ENGINE, FACTS, GPU, SHAPES, SOURCE, TECHNIQUES, TIMES_US, sha256, source


def run_result(**changes: Any) -> RunResult:
    output = TensorSummary(
        shape=(256, 256),
        dtype="float32",
        device="cuda:0",
        min=1.2e-5,
        max=0.0871,
        mean=1 / 256,
    )
    values: dict[str, Any] = {
        "op": "softmax",
        "version": "v2_tiling",
        "attempt": 1,
        "sha256": sha256(SOURCE),
        "status": Status.PASSED,
        "inputs": "small 256x256 float32",
        "outputs": (output,),
        "first_call_ms": 312.4,
        "second_call_ms": 0.041,
        "environment": GPU,
    }
    return RunResult(**values | changes)


def version_state(n: int, **changes: Any) -> VersionState:
    version = version_name(n)
    means = dict(zip(SHAPES, TIMES_US.get(version, TIMES_US["v5"]), strict=True))
    final = sum(means.values()) / 3
    values: dict[str, Any] = {
        "version": version,
        "attempt": 1,
        "entry": "triton_softmax",
        "path": f"kernels/softmax/{version}.py",
        "sha256": sha256(SOURCE),
        "validation": Status.PASSED,
        "validation_device": "gpu",
        "coverage": Coverage(dtypes=("float32",)),
        "cases": "12 of 12",
        "final_us": final,
        "means_us": means,
        "clock": "gpu",
        "speedup": sum(TIMES_US["torch"]) / 3 / final,
    }
    return VersionState(**values | changes)


def op_state(n_versions: int = 3, **changes: Any) -> OpState:
    versions = tuple(
        version_state(n, best=n == 2, attempt=2 if n == 1 else 1, attempts_failed=int(n == 1))
        for n in range(1, n_versions + 1)
    )
    values: dict[str, Any] = {
        "op": "softmax",
        "state": "end" if n_versions >= 3 else "write",
        "allowed": ("write", "best", "log"),
        "next_step": NextStep("best", {"op": "softmax"}),
        "min_writes": 3,
        "missing": ()
        if n_versions >= 3
        else (Gap(code=GapCode.FEW_VERSIONS, written=n_versions, required=3),),
        "versions": versions,
        "n_events": 12,
    }
    return OpState(**values | changes)


def lab_state(**changes: Any) -> LabState:
    values: dict[str, Any] = {
        "workspace": "work",
        "ops": (op_state(), op_state(1)),
        "engine": ENGINE,
    }
    return LabState(**values | changes)


def op_page(**changes: Any) -> OpPage:
    values: dict[str, Any] = {
        "facts": FACTS,
        "techniques": TECHNIQUES,
        "state": op_state(0, next_step=NextStep("kernel", {"op": "softmax", "version": "v1"})),
        "engine": ENGINE,
    }
    return OpPage(**values | changes)


REFERENCE = Reference(
    query="softmax mask",
    title="Masks",
    markdown=(
        "## Masks\n\nA *mask* guards a load. See [the docs](https://triton-lang.org).\n\n"
        "- `other=` is what masked lanes read\n- **never** leave it out before a max\n\n"
        "| op | other |\n| --- | ---: |\n| max | `-inf` |\n| sum | 0 |\n\n"
        "```python\nx = tl.load(p, mask=m, other=0.0)\n```\n"
    ),
    more=("atomics", "autotune"),
)


TEMPLATE = Template(pattern="reduction", op="softmax", version="v1", source=SOURCE)


EXPORT = Export(
    op="softmax",
    workspace="work",
    markdown="logs/softmax_log.md",
    notebook="logs/softmax_log.ipynb",
    html="logs/softmax_log.html",
    jsonl="logs/softmax_log.jsonl",
)


PLAN = Plan(
    op="softmax",
    plan="quick",
    seed=83114,
    dtypes=("float32",),
    cases=(
        Case(shape=(256, 256), dtype="float32", size="small", seed=1),
        Case(shape=(4096, 4096), dtype="float32", size="large", seed=1),
    ),
    not_run=(
        CaseResult(
            case=Case(shape=(4096, 4096), dtype="float32", size="large", seed=1),
            status=CaseStatus.NOT_RUN,
            reason="takes about 4 s a launch here",
        ),
    ),
    device="CPU (interpreter)",
)


SUMMARY = Summary(path="docs/summarization.md", markdown="# State of this workspace", max_chars=600)


def best(**changes: Any) -> Best:
    values: dict[str, Any] = {
        "source": source("v2_tiling"),
        "final_us": 12.97,
        "speedup": 1.63,
        "geomean_speedup": 1.44,
        "reason": "smallest final of 2 versions in one benchmark; faster than v1 at large",
    }
    return Best(**values | changes)


def report(**changes: Any) -> Report:
    """Return a report: softmax is done, gelu waits for v2, whose first attempt failed."""
    setback = Setback(
        op="gelu", version="v1_baseline", status=Status.FAILED, attempts_failed=3, exhausted=True,
        why="7 of 43 cases",
    )  # fmt: skip
    done = OpResult(state=op_state(), best="v2_tiling", final_us=12.97, torch_us=21.1, speedup=1.63)
    waiting = OpResult(
        state=op_state(1, op="gelu"), paused=Pause(version="v2"), setbacks=(setback,)
    )
    return Report(**{"ops": (done, waiting), "paused_at": "gelu"} | changes)
