"""Kernels that a plan compiles, and the CPU time of each compiler, without a GPU.

    python tests/benchmarks/plan_compiles.py [--json PATH] [--plan full] [--each] [OP=FILE ...]
    python tests/benchmarks/plan_compiles.py --processes 2,12 softmax=FILE

A version is called in one process for each input form of a plan, one after the other. `forms` are
shapes, dtypes and layouts; `kernels` differ for the compiler. Seconds are of one core, with those of
the child processes: `front end` is all that Triton does before LLVM, `ptxas` includes the start of
its process, `calls` are the forms without a new kernel. `refused` are forms of very wide rows, which
a full plan compiles only if that is quick. `--each` prints a line for each kernel.

`--processes` compiles the forms in so many compile processes, as a validation does. `compiled` counts
each kernel as often as a process compiled it; the seconds include start and end of the processes.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import resource
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import triton
from common import report
from triton.backends.nvidia.compiler import CUDABackend

from triton_magics import languages, operators
from triton_magics.execution.cpu_cores import SHARE
from triton_magics.execution.job_refs import OpRef, VersionRef
from triton_magics.execution.job_requests import PlanJob
from triton_magics.harness import compile_ahead, warm_up
from triton_magics.harness.correctness.case_plan import DeviceFacts, plan_cases
from triton_magics.harness.correctness.case_scheduler import brief_forms
from triton_magics.harness.load import LoadedVersion, load_version
from triton_magics.harness.process import compile_processes
from triton_magics.harness.process.compile_processes import Refused
from triton_magics.harness.process.device import META, kernel_runtime
from triton_magics.harness.process.fake_gpu import fake_gpu
from triton_magics.languages.kernel_compiler import Target
from triton_magics.model import Case

KERNELS = Path(__file__).parent.parent / "faults" / "kernels"
FILES = {
    "softmax": ("softmax_right.py", "right/softmax_online.py"),
    "layer_norm": ("layer_norm_right.py",),
    "cross_entropy": ("right/cross_entropy_rows.py",),
    "vector_add": ("vector_add_right.py",),
    "matmul": ("matmul_right.py", "right/matmul_autotuned.py"),
}
LATE = {"llir": "LLVM", "ptx": "LLVM", "cubin": "ptxas"}  # stages after the front end
TARGET = Target(90, 132)  # an H100


def used_cpu_s() -> float:
    """Return the CPU time of this process and of the children that have ended, seconds."""
    both = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(sum(resource.getrusage(who)[:2]) for who in both)


class CompilerRecord:
    """The work of Triton's compiler in this process.

    Attributes:
        cpu_s: seconds by stage, of those after the front end.
        kernels: a line for each kernel.
    """

    def __init__(self) -> None:
        """Begin."""
        self.cpu_s: Counter[str] = Counter()
        self.kernels: list[str] = []
        add_stages = CUDABackend.add_stages

        def add_timed(backend: Any, stages: dict[str, Any], *args: Any) -> None:
            add_stages(backend, stages, *args)
            stages |= {n: self._timed(LATE[n], stages[n]) for n in LATE if n in stages}

        CUDABackend.add_stages = add_timed
        triton.knobs.compilation.listener = self._add

    def _timed(self, stage: str, run: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            start_s = used_cpu_s()
            try:
                return run(*args)
            finally:
                self.cpu_s[stage] += used_cpu_s() - start_s

        return call

    def _add(self, *, src: Any, cache_hit: bool, **_: object) -> None:
        if not cache_hit:
            constants = {src.fn.arg_names[at[0]]: value for at, value in src.constants.items()}
            self.kernels.append(f"{src.name} {[*map(str, src.signature.values())]} {constants}")


def measure(op_name: str, path: Path, plan: str, *, each: bool) -> dict[str, Any]:
    """Compile the forms of a plan of one version, in this process."""
    job = PlanJob(op=OpRef(name=op_name), plan=plan, seed=7, device_kind="gpu")
    cases = plan_cases(operators.load(op_name), job, DeviceFacts()).cases
    record = CompilerRecord()
    kernel_runtime().use_target(TARGET)
    with fake_gpu(META, TARGET):
        compile_forms(op_name, load_version(version(op_name, path)), cases[:1], plan, record)
        record.cpu_s.clear()
        measured = load_version(version(op_name, path))
        rows = compile_forms(op_name, measured, cases, plan, record)
    for cpu_s, form, kernels in rows if each else ():
        print(f"{cpu_s:.3f}", *form, *kernels)
    whole_s = sum(cpu_s for cpu_s, *_ in rows)
    calls_s = sum(cpu_s for cpu_s, _, kernels in rows if not kernels)
    return {
        "op": op_name, "version": path.stem, "plan": plan, "cases": len(cases),
        "forms": len(compile_ahead.input_forms(cases)),
        "kernels": sum(len(kernels) for *_, kernels in rows),
        "refused": len(compile_ahead.input_forms(cases)) - len(rows),
        "CPU s": whole_s, "front end": whole_s - calls_s - sum(record.cpu_s.values()),
        "LLVM": record.cpu_s["LLVM"], "ptxas": record.cpu_s["ptxas"], "calls": calls_s,
    }  # fmt: skip


def compile_forms(
    op_name: str, own: LoadedVersion, cases: tuple[Case, ...], plan: str, record: CompilerRecord
) -> list[tuple[float, compile_ahead.Form, list[str]]]:
    """Compile each form of the cases; return the seconds, the form and the new kernels of each."""
    rows, brief = [], brief_forms(cases, plan)
    for form in compile_ahead.input_forms(cases):
        n_before, start_s = len(record.kernels), used_cpu_s()
        with suppress(Refused), kernel_runtime().compile_only(brief=form in brief):
            compile_ahead.compile_form(operators.load(op_name), own, form)
            rows.append((used_cpu_s() - start_s, form, record.kernels[n_before:]))
    return rows


def version(op_name: str, path: Path) -> VersionRef:
    """Return a version that was never compiled before."""
    source = f"{path.read_text()}\n# {time.time()}\n"
    return VersionRef(
        version="v1", attempt=1, source=source, sha256=hashlib.sha256(source.encode()).hexdigest(),
        entry=languages.get().parse(source, op=op_name).name, header_lines=0, cell_offset=0,
        shown_path=path.name,
    )  # fmt: skip


def in_a_fork(measure_here: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Measure in a fork of this process, with an empty cache."""
    here, there = os.pipe()
    if not (child := os.fork()):
        try:
            with tempfile.TemporaryDirectory() as folder:
                os.environ["TRITON_CACHE_DIR"] = os.environ["TRITON_MAGICS_SCRATCH"] = folder
                os.write(there, json.dumps(measure_here()).encode())
        except Exception:  # noqa: BLE001 (the process ends here: report the reason)
            traceback.print_exc()
        finally:
            os._exit(0)
    os.close(there)
    with os.fdopen(here) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    return json.loads(text)  # type: ignore[no-any-return]


def measure_processes(op_name: str, path: Path, plan: str, count: int) -> dict[str, Any]:
    """Compile the forms of a plan in processes that are forked from this one."""
    job = PlanJob(op=OpRef(name=op_name), plan=plan, seed=7, device_kind="gpu")
    cases = plan_cases(operators.load(op_name), job, DeviceFacts()).cases
    log = Path(os.environ["TRITON_CACHE_DIR"], "log")
    log.touch()

    def note(*, cache_hit: bool, **_: object) -> None:
        if not cache_hit:
            with log.open("a") as file:
                file.write("c")

    def work(order: dict[str, Any]) -> dict[str, Any] | None:
        triton.knobs.compilation.listener = note
        return compile_ahead.compile_order(order)

    os.environ[SHARE] = str(count)
    compile_processes.MAX_PROCESSES = count
    compile_processes.start_compile_processes(work)
    forms, own = compile_ahead.input_forms(cases), version(op_name, path)
    start_s = time.perf_counter()
    ahead = compile_ahead.AheadCompilation(
        OpRef(name=op_name), own, forms, TARGET, brief=brief_forms(cases, plan)
    )
    assert ahead._work
    ahead._work.wait()
    wall_s = time.perf_counter() - start_s
    compile_processes.wait_for_exit()
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    entries = [entry for entry in log.parent.iterdir() if any(entry.glob("*.cubin"))]
    return {
        "op": op_name, "version": path.stem, "plan": plan, "processes": count, "forms": len(forms),
        "kernels": len(entries), "compiled": log.stat().st_size, "wall s": wall_s,
        "CPU s": children.ru_utime + children.ru_stime, "of it system": children.ru_stime,
    }  # fmt: skip


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("versions", nargs="*", metavar="OP=FILE")
    parser.add_argument("--plan", default="full", choices=("quick", "full"))
    parser.add_argument("--each", action="store_true")
    parser.add_argument("--processes", metavar="2,12")
    options = parser.parse_args()
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    own = [(op, Path(file)) for op, _, file in (v.partition("=") for v in options.versions)]
    shipped = [(op, KERNELS / file) for op, files in FILES.items() for file in files]
    plan, each = options.plan, options.each
    if options.processes:
        warm_up.prepare()
        rows = [
            in_a_fork(partial(measure_processes, op, file, plan, int(count)))
            for op, file in own or shipped
            for count in options.processes.split(",")
        ]
    else:
        calls = [partial(measure, op, file, plan, each=each) for op, file in own or shipped]
        rows = [in_a_fork(call) for call in calls]
    report("Kernels that a plan compiles", rows, load=os.getloadavg()[0])


if __name__ == "__main__":
    main()
