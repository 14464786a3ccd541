"""Helpers for tests of the workspace: cells, results, a past session, the visible state."""

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

from triton_magics import workflow
from triton_magics.model import (
    Benchmark,
    Case,
    CaseResult,
    CaseStatus,
    Environment,
    KernelSource,
    OpFacts,
    Status,
    Timing,
    Validation,
    ValidationRequest,
)
from triton_magics.store import Workspace

ROOT = Path(__file__).resolve().parents[1]
STATE_TABLES = ("ops", "versions", "attempts", "verdicts", "passes", "times")


def open_workspace(path: Path, **options: object) -> Workspace:
    return Workspace(path, workflow.transition, **options)


def cell(mark: object) -> str:
    return f"def triton_softmax(x, dim=-1):\n    return x  # {mark}\n"


def write(workspace: Workspace, version: str, mark: object, op: str = "softmax") -> KernelSource:
    return write_cell(workspace, version, cell(mark), op=op)[0]


def write_cell(workspace, version, body, op="softmax", entry="triton_softmax"):
    return workspace.write(
        op, version, body, entry=entry, signature="(x, dim=-1)", cell_offset=1
    )  # fmt: skip


def environment(kind: str = "gpu") -> Environment:
    return Environment(
        device_kind=kind, device="H200", python="3.11", torch="2.11", triton="3.6", numpy="2"
    )


def validation(
    source, status=Status.PASSED, plan="full", kind="gpu", dtypes=("float32",), **request
):
    """Return a validation with one case per dtype; all cases of a failed one fail.

    `request`: more fields of its request.
    """
    right = status is Status.PASSED
    status_of_case = CaseStatus.PASSED if right else CaseStatus.WRONG_VALUES
    cases = tuple(
        CaseResult(
            case=Case(shape=(8, 8), dtype=dtype, seed=1),
            status=status_of_case,
            error_share=0.25 if right else None,
            calibrated=right,
        )
        for dtype in dtypes
    )
    return Validation(
        op=source.op,
        version=source.version,
        attempt=source.attempt,
        sha256=source.sha256,
        status=status,
        request=ValidationRequest(plan=plan, seed=1, **request),
        dtypes=dtypes,
        cases=cases,
        environment=environment(kind) if kind else None,
    )


def benchmark(finals_us, *, sizes=("small", "medium", "large"), clock="gpu", status=Status.PASSED):
    """Return a benchmark with a torch of 10 us; `finals_us`: microseconds by source."""
    times = {"torch": 10.0, **{s.version: us for s, us in finals_us.items()}}
    return Benchmark(
        op="softmax",
        status=status,
        versions=tuple(s.version for s in finals_us),
        sha256s=tuple(s.sha256 for s in finals_us),
        providers=tuple(times),
        sizes=sizes,
        runs=1,
        dtype="float32",
        clock=clock,
        seed=1,
        timings=tuple(
            Timing(provider=name, size=size, shape=(8, 8), clock=clock, samples_us=(us,))
            for name, us in times.items()
            for size in sizes
        ),
    )


def validate(workspace: Workspace, source: KernelSource, *args, **options) -> Validation:
    result = validation(source, *args, **options)
    workspace.record(source.op, "validated", version=source.version, result=result)
    return result


def bench(workspace: Workspace, finals_us, **options) -> Benchmark:
    result = benchmark(finals_us, **options)
    workspace.record("softmax", "benchmarked", result=result)
    return result


def own_facts(name: str = "my_op", **changes: object) -> OpFacts:
    text = dict.fromkeys(
        (
            "torch_equivalent", "signature", "formula", "description", "input_shapes",
            "output_shape", "complexity", "memory_pattern",
        ),
        "-",
    )  # fmt: skip
    return OpFacts(name=name, sizes={}, dtypes=("float32",), own=True, **{**text, **changes})


def past_session(path: Path) -> Path:
    """Make a workspace: two attempts at softmax v1, the first validated and timed; an own op."""
    with open_workspace(path) as workspace:
        source = write(workspace, "v1", 1)
        validate(workspace, source)
        bench(workspace, {source: 4.0})
        write(workspace, "v1", 2)
        workspace.define("my_op", "A = 1\n", own_facts())
    return path


def visible_state(workspace: Workspace) -> dict[str, tuple]:
    """Return everything that a front end can see of every op."""
    return {op: _visible_op(workspace, op) for op in sorted(workspace.open_ops())}


def _visible_op(workspace: Workspace, op: str) -> tuple:
    versions = workspace.versions(op)
    return (
        workspace.state(op),
        versions,
        [workspace.attempts(op, v.version) for v in versions],
        [workspace.latest_validation(op, v.version) for v in versions],
        workspace.latest_benchmark(op),
        workspace.ranking(op),
        workspace.own_ops().get(op),
        sorted(event.uuid for event in workspace.events(op)),
        workspace.count(op),
    )


def database(path: Path) -> Path:
    return path / ".triton_magics" / "lab.db"


def tables(path: Path) -> dict[str, list[tuple]]:
    """Return every row of the current state."""
    with closing(sqlite3.connect(database(path))) as conn:
        return {
            name: sorted(conn.execute(f"SELECT * FROM {name}").fetchall(), key=repr)
            for name in STATE_TABLES
        }


def child(code: str, *args: object, prefix: list[str] | None = None) -> subprocess.Popen:
    """Start a Python process that can import this package and this module; `prefix` runs it."""
    paths = os.pathsep.join([str(ROOT), str(ROOT / "tests")])
    return subprocess.Popen(
        [*(prefix or []), sys.executable, "-c", code, *map(str, args)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": paths},
    )


def wait_for_output(process: subprocess.Popen) -> str:
    """Return the output of a child, which must succeed."""
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return out
