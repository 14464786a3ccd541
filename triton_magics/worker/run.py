"""Call a version once, and once more: what it gives, how long the host waits, what it prints."""

from __future__ import annotations

import time
from typing import Any

import torch

from triton_magics import ops
from triton_magics.engine.protocol import Answer, RunJob
from triton_magics.model import Case, KernelError, RunResult, Status, TensorSummary, shape_text
from triton_magics.worker.cases import DTYPES, make_pristine
from triton_magics.worker.load import (
    Loaded,
    LoadError,
    UserFault,
    compile_cache,
    explain,
    load_op,
    load_version,
    ran_out_of_memory,
    refused_by_compiler,
)
from triton_magics.worker.lock import gpu_lock
from triton_magics.worker.oracle import outputs_of
from triton_magics.worker.pretend import pretending
from triton_magics.worker.report import Reporter
from triton_magics.worker.resources import environment, this_device


def run(job: RunJob, report: Reporter) -> tuple[Answer, bool]:
    """Both calls and the outputs at a glance; on a GPU, while nobody times there."""
    op, uuid = load_op(job.op), environment().gpu_uuid
    what = f"running {op.name} {job.version.version}"
    with gpu_lock(uuid, alone=False, what=what, waiting=report.waiting):
        report.stage("making inputs")
        return _run(job, op, report)


def _run(job: RunJob, op: ops.Op, report: Reporter) -> tuple[Answer, bool]:
    device = this_device()
    given, said = _inputs(op, job, device)
    base = RunResult(
        op=job.op.name,
        version=job.version.version,
        attempt=job.version.attempt,
        sha256=job.version.sha256,
        status=Status.PASSED,
        inputs=said,
        environment=environment(),
    )
    compiles_s = job.compile_s if device.type == "cuda" else 0.0
    report.stage(f"calling it on {said}", patience_s=compiles_s)
    try:
        with compile_cache((job.version,)), torch.no_grad(), pretending(device):
            version = load_version(job.version)
            value, first_ms = _timed(version, given, device)
            report.stage(f"calling it again on {said}")
            value, second_ms = _timed(version, given, device)
    except LoadError as error:
        return _failed(base, error, explain(error, job.version)), True
    except BaseException as error:  # noqa: BLE001 (sys.exit() too is the version's result)
        return _failed(base, error, explain(error, job.version)), device.type == "cuda"
    update = {
        "outputs": tuple(summary(t) for t in outputs_of(value)),
        "first_call_ms": first_ms,
        "second_call_ms": second_ms,
    }
    return base.model_copy(update=update), False


def _failed(base: RunResult, raised: BaseException, error: KernelError) -> RunResult:
    status = Status.COMPILE_ERROR if refused_by_compiler(error) else Status.RUNTIME_ERROR
    if ran_out_of_memory(raised):
        status = Status.OUT_OF_MEMORY
    return base.model_copy(update={"status": status, "error": error})


def _inputs(op: ops.Op, job: RunJob, device: torch.device) -> tuple[tuple[Any, ...], str]:
    """The inputs and how to name them: an expression of the user's, a shape or a size."""
    if job.inputs is not None:
        names = {"torch": torch, "device": device}
        try:
            with pretending(device):
                value = eval(job.inputs, names)  # noqa: S307 (the user's own words, in their own process)
        except Exception as error:
            raise UserFault(f"--inputs: {type(error).__name__}: {error}") from error
        return tuple(value) if isinstance(value, tuple | list) else (value,), job.inputs
    if job.dtype not in DTYPES:
        raise UserFault(f"unknown dtype {job.dtype!r}; known: {', '.join(DTYPES)}")
    shape = job.shape or op.sizes[job.size or "small"]
    case = Case(shape=shape, dtype=job.dtype, seed=job.seed)
    size = f"{job.size} " if job.shape is None else ""
    return make_pristine(op, case, device), f"{size}{shape_text(shape)} {job.dtype}"


def _timed(version: Loaded, given: tuple[Any, ...], device: torch.device) -> tuple[Any, float]:
    """The output and how long the host waited for it, milliseconds."""
    begun = time.perf_counter()
    value = version.call(*given)
    if device.type == "cuda":
        torch.cuda.synchronize()
    return value, 1e3 * (time.perf_counter() - begun)


def summary(value: Any) -> TensorSummary:
    """An output at a glance; NaN counted, not averaged.

    Raises:
        UserFault: it is no tensor.
    """
    if not isinstance(value, torch.Tensor):
        return TensorSummary(shape=(), dtype=type(value).__name__, device="not a tensor")
    numbers = value.detach().double().flatten()
    finite = numbers[numbers.isfinite()]
    known = finite.numel() > 0
    return TensorSummary(
        shape=tuple(value.shape),
        dtype=str(value.dtype).removeprefix("torch."),
        device="cuda:0" if value.device.type == "cuda" else "cpu",
        min=float(finite.min()) if known else None,
        max=float(finite.max()) if known else None,
        mean=float(finite.mean()) if known else None,
        n_nan=int(numbers.isnan().sum()),
    )
