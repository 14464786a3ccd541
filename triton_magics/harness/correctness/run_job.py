"""Run job: call a version twice; return a summary of its outputs and the host times."""

from __future__ import annotations

from time import perf_counter  # now: a version may replace it
from typing import Any

import torch

from triton_magics import exception_text, operators
from triton_magics.execution.job_answers import Answer
from triton_magics.execution.job_refs import VersionRef
from triton_magics.execution.job_requests import RunJob
from triton_magics.harness.correctness.call_record import all_outputs
from triton_magics.harness.correctness.case_inputs import DTYPES, make_pristine
from triton_magics.harness.correctness.oracle import own_inputs
from triton_magics.harness.load import (
    LoadedVersion,
    LoadError,
    UserFault,
    compile_cache,
    is_out_of_memory,
    load_op,
    load_version,
    make_kernel_error,
)
from triton_magics.harness.process.device import (
    CPU,
    GPU,
    environment,
    kernel_runtime,
    this_device,
)
from triton_magics.harness.process.fake_gpu import fake_gpu
from triton_magics.harness.process.gpu_lock import gpu_lock
from triton_magics.harness.process.reporter import Reporter
from triton_magics.languages.kernel_runtime import NeedsGpu
from triton_magics.model import Case, KernelError, RunResult, Status, TensorSummary, shape_text


def run(job: RunJob, report: Reporter) -> tuple[Answer, bool]:
    """Call the version twice; on a GPU, wait until no other worker times there."""
    op, uuid = load_op(job.op), environment().gpu_uuid
    purpose = f"running {op.name} {job.version.version}"
    with gpu_lock(uuid, exclusive=False, purpose=purpose, on_wait=report.waiting):
        report.stage("making inputs")
        return _run(job, op, report)


def _run(job: RunJob, op: operators.Op, report: Reporter) -> tuple[Answer, bool]:
    device = this_device()
    arguments, label = _inputs(op, job, device)
    base = RunResult(
        op=job.op.name,
        version=job.version.version,
        attempt=job.version.attempt,
        sha256=job.version.sha256,
        status=Status.FAILED,
        inputs=label,
        environment=environment(),
    )
    if reason := kernel_runtime(job.version.language).refused_here():
        status = Status.UNAVAILABLE if device == GPU else Status.NO_GPU
        return base.evolve(status=status, message=reason), False
    compiles_s = job.compile_s if device == GPU else 0.0
    report.stage(f"calling it on {label}", patience_s=compiles_s)
    try:
        with compile_cache((job.version,)), torch.no_grad(), fake_gpu(device):
            version = load_version(job.version)
            _, first_ms = _call_timed(version, own_inputs(op, arguments), device)
            report.stage(f"calling it again on {label}")
            value, second_ms = _call_timed(version, arguments, device)
            mutates = tuple(i for i in op.mutates if i < len(arguments))
            outputs = tuple(map(summary, all_outputs(value, arguments, mutates)))
    except LoadError as error:
        return _failed_run(base, job.version, error, make_kernel_error(error, job.version)), True
    except BaseException as error:  # noqa: BLE001 (sys.exit() too is the version's result)
        return _failed_run(
            base, job.version, error, make_kernel_error(error, job.version)
        ), device == GPU
    result = base.evolve(
        status=Status.PASSED,
        outputs=outputs,
        first_call_ms=first_ms,
        second_call_ms=second_ms,
    )
    return result, False


def _failed_run(
    base: RunResult, ref: VersionRef, raised: BaseException, error: KernelError
) -> RunResult:
    refused = kernel_runtime(ref.language).is_compile_error(error)
    if exception_text.is_a(raised, NeedsGpu):
        return base.evolve(status=Status.NO_GPU, message=error.message)
    status = Status.COMPILE_ERROR if refused else Status.RUNTIME_ERROR
    if is_out_of_memory(raised):
        status = Status.OUT_OF_MEMORY
    return base.evolve(status=status, error=error)


def _inputs(op: operators.Op, job: RunJob, device: torch.device) -> tuple[tuple[Any, ...], str]:
    """Return the inputs and their label: the user's expression, a shape or a size."""
    if job.inputs is not None:
        names = {"torch": torch, "device": device}
        try:
            with fake_gpu(device):
                value = eval(job.inputs, names)  # noqa: S307 (the user's own words, in their own process)
        except BaseException as error:  # exit() too: the code is the user's own
            raise UserFault(f"--inputs: {exception_text.one_line(error)}") from error
        return tuple(value) if isinstance(value, tuple | list) else (value,), job.inputs
    if job.op.inputs is not None:
        (size,) = op.sizes
        case = Case(shape=op.sizes[size], dtype=op.dtypes[0], seed=job.seed)
        return make_pristine(op, case, device), job.op.inputs.name
    if job.dtype not in DTYPES:
        raise UserFault(f"unknown dtype {job.dtype!r}; known: {', '.join(DTYPES)}")
    size = job.size or operators.smallest_size(op)
    shape = job.shape or op.sizes[size]
    case = Case(shape=shape, dtype=job.dtype, seed=job.seed)
    name = f"{size} " if job.shape is None else ""
    return make_pristine(op, case, device), f"{name}{shape_text(shape)} {job.dtype}"


def _call_timed(
    version: LoadedVersion, arguments: tuple[Any, ...], device: torch.device
) -> tuple[Any, float]:
    """Return the output, and how long the host waited for it in milliseconds."""
    started = perf_counter()
    value = version.call(*arguments)
    if device == GPU:
        torch.cuda.synchronize()
    return value, 1e3 * (perf_counter() - started)


def summary(value: Any) -> TensorSummary:
    """Return a summary of an output; NaN are counted, not averaged."""
    if not isinstance(value, torch.Tensor):
        return TensorSummary(shape=(), dtype=type(value).__name__, device="not a tensor")
    once = _without_repeats(value.detach())
    repeats = value.numel() // max(1, once.numel())
    numbers = once.double().flatten()
    finite = numbers[numbers.isfinite()]
    has_finite = finite.numel() > 0
    return TensorSummary(
        shape=tuple(value.shape),
        dtype=str(value.dtype).removeprefix("torch."),
        device=str(GPU if value.device.type == GPU.type else CPU),
        min=float(finite.min()) if has_finite else None,
        max=float(finite.max()) if has_finite else None,
        mean=float(finite.mean()) if has_finite else None,
        n_nan=int(numbers.isnan().sum()) * repeats,
    )


def _without_repeats(tensor: torch.Tensor) -> torch.Tensor:
    """Return the elements of an expanded tensor that are in memory, each once."""
    if tensor.layout != torch.strided:
        return tensor
    for dimension, stride in enumerate(tensor.stride()):
        if not stride and tensor.shape[dimension]:
            tensor = tensor.narrow(dimension, 0, 1)
    return tensor
