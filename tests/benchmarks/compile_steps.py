"""The steps of the job that `write` runs: a new softmax, compiled with all that `--quick` needs.

    python tests/benchmarks/compile_steps.py [--json PATH] [--type triton,cuda] [--plan quick]

It needs no GPU. Each job runs in a process that is forked as a compile worker is. `own` is the time
until the version's own sizes are compiled, `all` until the rest is; `kernels` is how many were
compiled, `distinct` how many of them differ, `CPU s` what all processes used.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from typing import Any

from common import report
from loop import variant

from triton_magics import languages
from triton_magics.execution.job_refs import OpRef, VersionRef
from triton_magics.execution.job_requests import CompileJob
from triton_magics.execution.scratch import variables
from triton_magics.harness import compile_ahead, compile_job, warm_up
from triton_magics.harness.process import compile_processes, device
from triton_magics.model import Compilation

REPEATS = 4
ENTRIES = {"triton": "triton_softmax", "cuda": "cuda_softmax"}
Marks = dict[str, float]


def version(number: int, kind: str) -> VersionRef:
    """Return a softmax that was never compiled before."""
    source = variant(number, kind)
    return VersionRef(
        version="v1", attempt=1, source=source, sha256=hashlib.sha256(source.encode()).hexdigest(),
        entry=ENTRIES[kind], header_lines=0, cell_offset=0, shown_path="v1", language=kind,
    )  # fmt: skip


def mark_end(marks: Marks, name: str, owner: Any, function: str) -> None:
    """Have the end of a function's first call written down."""
    before: Callable[..., Any] = getattr(owner, function)

    def call(*args: Any, **options: Any) -> Any:
        try:
            return before(*args, **options)
        finally:
            marks.setdefault(name, time.perf_counter())

    setattr(owner, function, call)


def count_kernels() -> tuple[int, int]:
    """Return the number of compiled kernels in this process's cache, and of Triton's entries."""
    folder = os.environ["TRITON_CACHE_DIR"]
    names = [name for name in os.listdir(folder) if os.path.isdir(f"{folder}/{name}")]
    has_code = [
        any(f.endswith((".cubin", "data")) for f in os.listdir(f"{folder}/{n}")) for n in names
    ]
    return sum(has_code), len(names)


def measure(number: int, kind: str, plan: str) -> dict[str, float]:
    """Compile one version, in a worker of its own."""
    scratch = tempfile.mkdtemp()
    os.environ |= variables(scratch)
    languages.set_worker_environment("compiler", scratch)
    compile_processes.start_compile_processes(work)
    device.create_context("compiler")
    warm_up.run("compiler")
    before = count_kernels()[0]
    marks: Marks = {}
    background = compile_job._BackgroundCompilation
    mark_end(marks, "begin", background, "begin")
    mark_end(marks, "first call", compile_job, "_call_without_kernels")
    mark_end(marks, "own", background, "wait")
    mark_end(marks, "figures", compile_job, "compile_version")
    job = CompileJob(
        op=OpRef(name="softmax"), version=version(number, kind), sm_count=132, ahead=plan,
    )  # fmt: skip
    used_s = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
    start_s = time.perf_counter()
    answer, _ = compile_job.run(job, warm_up.SilentReporter())
    marks["all"] = time.perf_counter()
    compile_processes.wait_for_exit()
    assert isinstance(answer, Compilation)
    assert answer.status == "passed", answer.error
    used_s = (
        sum(
            sum(resource.getrusage(who)[:2])
            for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
        )
        - used_s
    )
    return {name: at - start_s for name, at in marks.items()} | {
        "distinct": count_kernels()[0] - before,
        "CPU s": used_s,
    }


def work(order: dict[str, Any]) -> None:
    """Execute an order, as a worker's compile processes do."""
    (compile_ahead.warm_up if order.get("warm_up") else compile_ahead.compile_order)(order)


def in_a_fork(number: int, kind: str, plan: str) -> dict[str, float]:
    """Measure in a fork of this process, as a worker is a fork of the fork server."""
    here, there = os.pipe()
    if not (child := os.fork()):
        try:
            os.write(there, json.dumps(measure(number, kind, plan)).encode())
        finally:
            os._exit(0)
    os.close(there)
    with os.fdopen(here) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    return json.loads(text)  # type: ignore[no-any-return]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--type", default="triton,cuda")
    parser.add_argument("--plan", default="quick", choices=("quick", "full"))
    options = parser.parse_known_args()[0]
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    warm_up.prepare()
    rows = []
    for kind in options.type.split(","):
        runs = [in_a_fork(number, kind, options.plan) for number in range(REPEATS)]
        medians = {name: round(statistics.median(run[name] for run in runs), 3) for name in runs[0]}
        rows.append({"type": kind, "plan": options.plan, **medians})
    report(f"What write compiles, {os.cpu_count()} cores", rows, repeats=REPEATS)


if __name__ == "__main__":
    main()
