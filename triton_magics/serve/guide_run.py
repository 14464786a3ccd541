"""Carry out a request that brings its own kernels: an op, a version, a verdict, times."""

from __future__ import annotations

import shutil
import statistics
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from triton_magics import languages
from triton_magics.config import cache_dir
from triton_magics.errors import BadKernelSource, Unavailable, UserError
from triton_magics.model import (
    Benchmark,
    Environment,
    Profile,
    Result,
    Status,
    Timing,
    Validation,
    Value,
    Written,
    categories_of,
    roofline_of,
)
from triton_magics.problems import read_problem
from triton_magics.serve import guide_sources
from triton_magics.serve.guide_requests import CompareBody, EvaluateBody, KernelCode, ValidateBody
from triton_magics.serve.job_service import JobService
from triton_magics.session import Session
from triton_magics.verbs import bench, kernel, profile, reference, run, validate

VERSION = "v1"
ABANDONED_S = 86_400.0
OWN_WARM_UP = "num_warmup_unused"  # the timer warms up until its clock is steady
Request = EvaluateBody | CompareBody


_UNJUDGED = (Status.NO_GPU, Status.UNAVAILABLE, Status.INTERRUPTED)


class KernelResult(Value):
    """Outcome of one kernel; times in milliseconds, None where nothing was measured.

    Attributes:
        compiled: None where it could be neither compiled nor run here.
        correctness: None where nothing was compared.
    """

    compiled: bool | None
    correctness: bool | None = None
    runtime: float | None = None
    runtime_stats: dict[str, float | None] | None = None
    compilation_error: str | None = None
    validation_error: str | None = None
    metadata: dict[str, Any]


class GuideResult(Value):
    """Answer to evaluate, compare and validate.

    Attributes:
        job_id: of the job; empty until it has one.
        status: of the kernel: `passed`, `failed`, `compile_error`, `timeout`, `no_gpu` ...
        message: why nothing was judged; None where it was.
        ref_runtime: of the reference, milliseconds.
        speedup: runtime of the reference over that of the kernel, in the same rounds.
        badges: conditions that a reader must know.
        validation, benchmark: the whole values.
    """

    kind: str = "kernel_evaluation"
    job_id: str = ""
    status: Status
    message: str | None = None
    kernel_exec_result: KernelResult
    ref_runtime: float | None = None
    speedup: float | None = None
    badges: tuple[str, ...] = ()
    environment: dict[str, Any] | None = None
    validation: dict[str, Any] | None = None
    benchmark: dict[str, Any] | None = None


def evaluate(service: JobService, request: Request) -> GuideResult:
    """Compile, validate and, but for a `ValidateBody`, time a kernel, in a workspace of its own.

    Args:
        service: its jobs run on the service's manager.
        request: checked.

    Raises:
        UserError: the request can't be carried out.
    """
    folder = _evaluations() / uuid.uuid4().hex
    folder.mkdir(parents=True)
    lab = service.lab
    session = Session(folder, lab.settings, manager=lab.jobs, strict=False)
    try:
        return Evaluation(session, request).run()
    finally:
        session.close()
        shutil.rmtree(folder, ignore_errors=True)


def remove_abandoned(now: float) -> int:
    """Remove the workspaces that killed servers left a day ago or earlier; return how many.

    Args:
        now: seconds since 1970.
    """
    folders = [path for path in _evaluations().glob("*") if path.is_dir()]
    old = [path for path in folders if now - path.stat().st_mtime > ABANDONED_S]
    for path in old:
        shutil.rmtree(path, ignore_errors=True)
    return len(old)


def _evaluations() -> Path:
    return cache_dir() / "evaluations"


class Evaluation:
    """One request in its workspace.

    Args:
        session: of an empty workspace.
        request: checked.
    """

    def __init__(self, session: Session, request: Request) -> None:
        self._session = session
        self._request = request
        subject, ref = request.subjects.values()
        assert subject is not None
        self._subject: KernelCode = subject
        self._reference = ref

    def run(self) -> GuideResult:
        """Return the result; a kernel that fails is a result too."""
        try:
            op = self._define_op()
            written = self._write(op)
        except BadKernelSource as error:
            message = guide_sources.in_request_words(str(error))
            return self._refusal_result(Status.COMPILE_ERROR, message)
        except Unavailable as error:
            return self._refusal_result(Status.UNAVAILABLE, str(error))
        except UserError as error:
            if self._has_reference:
                raise
            return self._refusal_result(Status.RUNTIME_ERROR, str(error))  # the kernel's own inputs
        if written.compilation and written.compilation.status is Status.COMPILE_ERROR:
            return self._refusal_result(Status.COMPILE_ERROR, _message_of(written.compilation))
        if not self._has_reference and not self._is_own_reference:
            return self._run_only(op)
        validation = validate.run(self._session, self._validate_request(op))
        assert isinstance(validation, Validation)
        benchmark = None
        wants_times = not isinstance(self._request, ValidateBody)
        if wants_times and validation.passed and self._session.jobs.device_kind == "gpu":
            benchmark = bench.time_once(self._session, self._bench_request(op))
        metrics = self._metrics(op) if validation.passed else None
        return self._result(validation, benchmark, metrics)

    def _metrics(self, op: str) -> dict[str, Any] | None:
        """Return the counters of a run of its own, or why there are none; None if not asked for."""
        is_wanted = self._request.enable_device_metrics
        if not is_wanted or self._session.jobs.device_kind != "gpu":
            return None
        limit = float(self._request.timeout)
        request = profile.ProfileRequest.checked({"op": op, "version": VERSION, "timeout": limit})
        try:
            return _metrics_of(profile.run(self._session, request))
        except Unavailable as error:  # the verdict stands without them
            return {"status": str(Status.UNAVAILABLE), "message": str(error)}

    # ------------------------------------------------------------------------------------ steps

    @property
    def _has_reference(self) -> bool:
        return self._reference is not None or self._subject.op is not None

    @property
    def _is_own_reference(self) -> bool:
        """True for torch without a reference: it is timed, and its output is not judged."""
        return self._subject.kernel_type in ("torch", "torch_cuda")

    def _define_op(self) -> str:
        """Return the name of the op: the server's own, or one made of the reference."""
        ref = self._reference
        if ref is None and self._subject.op is not None:
            return self._session.canonical(self._subject.op)
        contract = self._subject.contract
        if ref is None and not self._is_own_reference:
            assert contract is not None  # the request was refused without one
            self._define(guide_sources.inputs_only_text(contract))
            return guide_sources.OP
        source = (ref or self._subject).source_code
        if contract is None and guide_sources.is_problem(source):
            self._define(self._read_problem(source))
            return guide_sources.OP
        text = guide_sources.op_text(
            ref or self._subject,
            contract or (ref.contract if ref else None),
            "reference" if ref else "kernel",
        )
        self._define(text)
        return guide_sources.OP

    def _read_problem(self, source: str) -> str:
        """Return the op of a module with `Model` and `get_inputs`, as a worker finds it to work."""
        file = self._session.path / "problem.py"
        file.write_text(source, encoding="utf-8")
        return self._session.jobs.probe(read_problem(file, guide_sources.OP))

    def _define(self, text: str) -> None:
        reference.run(self._session, reference.ReferenceRequest(op=guide_sources.OP, source=text))

    def _write(self, op: str) -> Written:
        name = self._subject.kernel_type
        if name not in languages.names():
            raise Unavailable(f"kernels of type {name} can't run here")
        source, entry = guide_sources.kernel_text(self._subject)
        return kernel.run(
            self._session,
            kernel.KernelRequest(op=op, version=VERSION, source=source, type=name, entry=entry),
        )

    def _validate_request(self, op: str) -> validate.ValidateRequest:
        request = self._request
        plan = "quick" if request.num_trials < 1000 else "full"
        return validate.ValidateRequest.checked(
            {
                "op": op, "version": VERSION, "plan": plan, "rtol": request.rtol,
                "atol": request.atol, "timeout": float(request.timeout),
            }
        )  # fmt: skip

    def _bench_request(self, op: str) -> bench.BenchRequest:
        request = self._request
        return bench.BenchRequest.checked(
            {
                "op": op, "versions": (VERSION,), "runs": request.num_trials,
                "timer": request.timer, "timeout": float(request.timeout),
            }
        )  # fmt: skip

    # ----------------------------------------------------------------------------------- result

    def _run_only(self, op: str) -> GuideResult:
        """Return the result of a kernel without a reference: it runs, and nothing judges it."""
        request = run.RunRequest.checked(
            {"op": op, "version": VERSION, "timeout": float(self._request.timeout)}
        )
        result = run.run(self._session, request)
        environment = result.environment
        outcome = KernelResult(
            compiled=result.status is not Status.COMPILE_ERROR,
            validation_error=None if result.passed else _message_of(result),
            metadata=_device(environment),
        )
        return GuideResult(
            status=result.status,
            kernel_exec_result=outcome,
            badges=("no_reference",),
            environment=environment.model_dump(mode="json") if environment else None,
        )

    def _refusal_result(self, status: Status, message: str) -> GuideResult:
        outcome = KernelResult(compiled=False, compilation_error=message, metadata={})
        return GuideResult(status=status, kernel_exec_result=outcome)

    def _result(
        self,
        validation: Validation,
        benchmark: Benchmark | None,
        metrics: dict[str, Any] | None,
    ) -> GuideResult:
        compile_error = validation.status is Status.COMPILE_ERROR
        message = None if validation.passed else _message_of(validation)
        is_judged = validation.status not in _UNJUDGED
        has_compiled = is_judged or _has_compiled(validation)
        timing = _timing(benchmark, validation.version)
        ref = _timing(benchmark, "torch")
        environment = validation.environment
        status = validation.status
        if validation.passed and not isinstance(self._request, ValidateBody):
            status = benchmark.status if benchmark else Status.NO_GPU
        outcome = KernelResult(
            compiled=not compile_error if has_compiled else None,
            correctness=validation.passed
            if self._has_reference and is_judged and not compile_error
            else None,
            runtime=timing.mean_us / 1e3 if timing else None,
            runtime_stats=_stats(timing) if timing else None,
            compilation_error=message if compile_error else None,
            validation_error=message if is_judged and not compile_error else None,
            metadata={**_device(environment), "device_metrics": metrics},
        )
        badges = [str(b.code) for each in (validation, benchmark) if each for b in each.badges]
        if "num_warmup" in self._request.model_fields_set:
            badges.append(OWN_WARM_UP)
        return GuideResult(
            status=status,
            message=None if is_judged else message,
            kernel_exec_result=outcome,
            ref_runtime=ref.mean_us / 1e3 if ref else None,
            speedup=benchmark.speedup(validation.version) if benchmark else None,
            badges=tuple(badges),
            environment=environment.model_dump(mode="json") if environment else None,
            validation=_dump(validation),
            benchmark=_dump(benchmark),
        )


def _metrics_of(value: Profile) -> dict[str, Any]:
    """Return a profile with its limit, and its figures by category; its report is removed."""
    kernel = value.main_kernel if value.rung == "counters" else None
    categories: dict[str, Any] = {
        category: {name: figure.model_dump() for name, figure in figures.items()}
        for category, figures in (categories_of(kernel) if kernel else {}).items()
    }
    return {
        **(_dump(value.evolve(report_path=None)) or {}),
        "limit": value.limit.model_dump() if value.limit else None,
        "categories": categories | {"roofline": roofline_of(value)},
    }


def _dump(value: Value | None) -> dict[str, Any] | None:
    from triton_magics.serve.served_job import as_json

    return None if value is None else as_json(value)


def _has_compiled(validation: Validation) -> bool:
    compilation = validation.compilation
    return compilation is not None and compilation.status is Status.PASSED


def _device(environment: Environment | None) -> dict[str, Any]:
    return {
        "gpu_id": environment.gpu_uuid if environment else None,
        "gpu_type": environment.device if environment else None,
        "device_metrics": None,
    }


def _message_of(result: Result) -> str:
    """Return one line on why a result is not `passed`."""
    error = result.error
    if error is not None:
        place = f" (line {error.line})" if error.line else ""
        return f"{error.kind}: {error.message}{place}"
    failed = result.failed_cases if isinstance(result, Validation) else ()
    if failed and not result.message:
        n_cases = len(result.cases) if isinstance(result, Validation) else 0
        return f"{len(failed)} of {n_cases} cases failed: {failed[0].status.value}"
    return result.message or result.status.value


def _timing(benchmark: Benchmark | None, provider: str) -> Timing | None:
    """Return the timing at the largest size that was timed."""
    timings = [t for t in benchmark.timings if t.provider == provider] if benchmark else []
    return timings[-1] if timings else None


def _stats(timing: Timing) -> Mapping[str, float | None]:
    """Return the statistics of the samples, milliseconds."""
    samples = [us / 1e3 for us in timing.samples_us]
    return {
        "mean": statistics.fmean(samples),
        "std": statistics.stdev(samples) if len(samples) > 1 else None,
        "min": min(samples),
        "max": max(samples),
        "median": statistics.median(samples),
        "percentile_95": timing.percentile_us(95) / 1e3,
        "percentile_99": timing.percentile_us(99) / 1e3,
    }


__all__ = ["GuideResult", "KernelResult", "evaluate"]
