"""Compile job: compile a version for a GPU, present or not, and return static figures.

The user's whole wrapper runs on meta tensors; each launch compiles its kernel for the
target, and the grid and resources are recorded.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from triton_magics import operators
from triton_magics.execution.job_answers import Answer
from triton_magics.execution.job_refs import VersionRef
from triton_magics.execution.job_requests import CompileJob, PlanJob
from triton_magics.harness.compile_ahead import (
    AheadCompilation,
    Form,
    compile_here,
    input_forms,
)
from triton_magics.harness.correctness.case_inputs import make_meta, make_pristine
from triton_magics.harness.correctness.case_plan import DeviceFacts, plan_cases
from triton_magics.harness.load import (
    LoadedVersion,
    LoadError,
    compile_cache,
    forget_version,
    load_op,
    load_version,
    make_kernel_error,
    raised_in,
)
from triton_magics.harness.process.device import META, environment, kernel_runtime, this_device
from triton_magics.harness.process.fake_gpu import fake_gpu
from triton_magics.harness.process.gpu_lock import gpu_lock
from triton_magics.harness.process.output_flush import flush
from triton_magics.harness.process.reporter import Reporter
from triton_magics.languages.kernel_compiler import CodeRequest, KernelRecord, Target
from triton_magics.model import Case, Compilation, KernelError, Status

# What others than the sizes may take beyond those. A launcher, for example, takes gcc 0.4 s.
MIN_END_S = 0.8


def run(job: CompileJob, report: Reporter) -> tuple[Answer, bool]:
    """Return every kernel that the wrapper launches at the given sizes, with static figures."""
    started = time.monotonic()
    op = load_op(job.op)
    sizes = job.sizes or dict.fromkeys((operators.smallest_size(op), operators.largest_size(op)))
    cases = {s: Case(shape=op.sizes[s], dtype=job.dtype, size=s, seed=1) for s in sizes}
    base = Compilation(
        op=job.op.name,
        version=job.version.version,
        attempt=job.version.attempt,
        sha256=job.version.sha256,
        status=Status.PASSED,
        target=f"sm_{job.target}",
        here=job.here,
    )

    def conclude(update: Mapping[str, Any]) -> Compilation:
        return base.evolve(**update, duration_s=time.monotonic() - started)

    with compile_cache((job.version,)):
        if job.here:
            compilation = conclude(_inspect_on_gpu(job, op, cases, report))
        else:
            update, ahead = _cross_compile(job, op, cases, report)
            compilation = conclude(update)
            if ahead.has_later:
                flush()
                report.compilation(compilation)  # `write` returns, the rest is for a validation
            ahead.end()
    return compilation, job.here and compilation.status is not Status.PASSED


def _cross_compile(
    job: CompileJob, op: operators.Op, cases: Mapping[str, Case], report: Reporter
) -> tuple[dict[str, Any], _BackgroundCompilation]:
    """Cross-compile: the wrapper runs, no kernel does.

    Returns:
        the fields of the compilation, and what is still being compiled for a validation.
    """
    target = Target(job.target, job.sm_count)
    stage = f"compiling for sm_{job.target}"
    forget_version(job.version)
    compiling = kernel_runtime(job.version.language).cross_compile(target)
    with compiling as new_record:
        record = new_record(CodeRequest(job.detail, job.listings))
        ahead = _BackgroundCompilation(job, op, target, input_forms(cases.values()))
        ahead.begin()
        report.stage("importing it")

        def wait(version: LoadedVersion) -> None:
            report.stage("calling its wrapper, kernels skipped")
            _call_without_kernels(version, op, next(iter(cases.values())))
            report.stage(stage, patience_s=job.compile_s)
            ahead.wait(version)

        error, note = compile_version(
            job.version, op, cases, record, pretend=lambda: fake_gpu(META, target), ahead=wait,
            on_size=lambda size: report.stage(f"{stage}, {size}", patience_s=job.compile_s),
        )  # fmt: skip
    return {
        "status": Status.COMPILE_ERROR if error else Status.PASSED,
        "error": error,
        "kernels": record.kernels,
        "refused": record.launch_refusal(),
        "note": note or (None if error else _tuning_note(job.version)),
        "listings": record.listings,
    }, ahead


def _call_without_kernels(version: LoadedVersion, op: operators.Op, case: Case) -> None:
    """Call the wrapper up to its first compilation, so that an endless wrapper fails early."""
    with suppress(BaseException), torch.no_grad(), version.runtime.stop_at_compilation():
        version.call(*make_meta(op, case))  # the next call raises the same error


@dataclass
class _BackgroundCompilation:
    """Compile all sizes at once and, where it was requested, what a validation will need later.

    The latter is for others, which does not delay the answer: it ends soon after it.
    """

    job: CompileJob
    op: operators.Op
    target: Target
    own: list[Form]
    _compilation: AheadCompilation | None = None
    _started: float = 0.0
    _duration_s: float = 0.0

    def begin(self) -> None:
        """Start all; this process loads the version meanwhile."""
        self._started = time.monotonic()
        if not kernel_runtime(self.job.version.language).compiles_ahead:
            return
        later = self._later_forms()
        if len(self.own) + len(later) > 1:
            self._compilation = AheadCompilation(
                self.job.op, self.job.version, self.own, self.target, later=later
            )

    def wait(self, version: LoadedVersion) -> None:
        """Wait for the job's own sizes."""
        if self._compilation:
            self._compilation.wait(partial(compile_here, self.op, version), self.own)
        self._duration_s = time.monotonic() - self._started

    @property
    def has_later(self) -> bool:
        """True if forms are compiled for others."""
        return self._compilation is not None and self.job.ahead is not None

    def end(self) -> None:
        """Give the later forms as long again, then stop them."""
        if self._compilation:
            self._compilation.end(within_s=max(self._duration_s, MIN_END_S))

    def _later_forms(self) -> list[Form]:
        """Return the forms of the later validation, the slowest first: those of the longest rows.

        A row in one block keeps the compilers busy by its length, however many rows there are.
        """
        if self.job.ahead is None:
            return []
        request = PlanJob(
            op=self.job.op, plan=self.job.ahead, own_shapes=self.job.own_shapes, seed=0,
            device_kind="gpu",
        )  # fmt: skip
        forms = input_forms(plan_cases(self.op, request, DeviceFacts()).cases)
        return sorted(forms, key=_row_and_size, reverse=True)


def _row_and_size(form: Form) -> tuple[int, int]:
    shape = form[0]
    return math.prod(shape[-1:]), math.prod(shape)


def _tuning_note(ref: VersionRef) -> str | None:
    """Return a note if the version tunes itself: the figures are of one configuration."""
    version = load_version(ref)
    if not version.runtime.has_autotuner(version.module):
        return None
    return (
        "the version tunes itself: figures are of its first configuration, a GPU may choose another"
    )


def _inspect_on_gpu(
    job: CompileJob, op: operators.Op, cases: Mapping[str, Case], report: Reporter
) -> dict[str, Any]:
    """Run on this GPU, with tuning, and read the driver's figures of the kernels."""
    device, runtime = this_device(), kernel_runtime(job.version.language)
    record = runtime.record_kernels(CodeRequest(job.detail, job.listings))
    update: dict[str, Any] = {"target": environment().capability, "environment": environment()}
    try:
        version = load_version(job.version)
        for size, case in cases.items():
            uuid, purpose = environment().gpu_uuid, f"inspecting {op.name}"
            with gpu_lock(uuid, exclusive=False, purpose=purpose, on_wait=report.waiting):
                report.stage(f"running it at {size}", patience_s=job.compile_s)
                arguments = make_pristine(op, case, device)
                version.call(*arguments)  # it compiles, and tunes itself, here
                with record.during(size):
                    version.call(*arguments)
                torch.cuda.synchronize()
                update["kernels"] = record.kernels
    except torch.OutOfMemoryError:
        torch.cuda.empty_cache()
        update["note"] = "not every size fits the GPU's free memory"
    except BaseException as raised:  # noqa: BLE001 (sys.exit() too is the version's result)
        error = make_kernel_error(raised, job.version)
        compiler = runtime.is_compile_error(error)
        update["status"] = Status.COMPILE_ERROR if compiler else Status.RUNTIME_ERROR
        update["error"] = error
    return {"kernels": (), **update, "listings": record.listings}


def compile_version(
    ref: VersionRef,
    op: operators.Op,
    cases: Mapping[str, Case],
    record: KernelRecord,
    *,
    pretend: Callable[[], AbstractContextManager[object]],
    ahead: Callable[[LoadedVersion], None] = lambda version: None,
    on_size: Callable[[str], None] = lambda size: None,
) -> tuple[KernelError | None, str | None]:
    """Import a version and call it on meta tensors; nothing is launched.

    Args:
        ref: the version.
        op: the op that makes the inputs.
        cases: the cases by size.
        record: records what is compiled.
        pretend: a context in which the tensors act as GPU tensors.
        ahead: waits for the parallel compilation of all sizes, before the calls.
        on_size: called with each size before it is compiled.

    Returns:
        the error of the compiler or the import, and a note if it could not be compiled ahead.
    """
    try:
        with pretend():
            version = load_version(ref)
            if not version.runtime.compiles_ahead:
                return None, f"{version.runtime.title} compiles nothing ahead"
            if missing := version.runtime.missing_tool():
                return None, f"not compiled: {missing}"
            ahead(version)
            record.clear()  # launches that bypassed the JIT, at any size
        for size, case in cases.items():
            on_size(size)
            with torch.no_grad(), record.during(size):
                arguments = make_meta(op, case)
                with pretend():
                    version.call(*arguments)
    except LoadError as raised:
        return make_kernel_error(raised, ref), None
    except BaseException as raised:  # noqa: BLE001 (sys.exit() too is the version's result)
        error = make_kernel_error(raised, ref)
        runtime = kernel_runtime(ref.language)
        text = f"{error.kind}: {error.message}"
        if runtime.is_compile_error(error) or runtime.is_launch_error(text):
            return error, None
        return None, _not_ahead_note(error, raised_in(raised, ref))
    return None, None


def _not_ahead_note(error: KernelError, refused: bool) -> str:
    if refused:
        return f"not compiled ahead: the wrapper rejects this input ({error.message})"
    return f"not compiled ahead: the wrapper needs real data ({error.kind}: {error.message[:200]})"
