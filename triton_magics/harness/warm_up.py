"""Warm-up jobs: small jobs before the first real one, to load everything that loads on first use.

On an H200 the first validation of a process takes 3.8 s and its first benchmark 2.5 s longer than
the second; a standby worker has done that in its warm-up.
"""

from __future__ import annotations

import gc
import hashlib
import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import NamedTuple

import torch

from triton_magics import languages, operators
from triton_magics.execution.job_refs import OpRef, VersionRef
from triton_magics.execution.job_requests import BenchJob, CompileJob, Mode, PlanJob, ValidateJob
from triton_magics.harness import compile_ahead, job_sources
from triton_magics.harness import compile_job as compiling
from triton_magics.harness.correctness import (
    case_inputs,
    case_plan,
    left_behind,
    one_case,
    remote_calls,
    standard_state,
    validate_job,
)
from triton_magics.harness.correctness.subject import Subject
from triton_magics.harness.load import compile_cache, load_version
from triton_magics.harness.process import compile_processes, device, fork_server, subject_process
from triton_magics.harness.process.device import CPU, GPU
from triton_magics.harness.process.reporter import Reporter
from triton_magics.harness.timing import bench_job
from triton_magics.languages.kernel_compiler import Target
from triton_magics.languages.kernel_runtime import WarmUp
from triton_magics.model import Case, Environment, Value

SHAPE_ON_GPU, SHAPE_ON_CPU = (64, 4096), (7, 13)  # where their outputs are judged first
MOST_DRAWN = 2**19  # elements
WARM_COMPILE_PROCESSES = 4  # 13 MiB each; they compile a version's own sizes and the largest forms


class SilentReporter(Reporter):
    """A reporter that sends nothing."""

    def __init__(self) -> None:
        super().__init__(lambda frame: None, nonce="")


def warm_up(mode: Mode) -> Environment:
    """Create the context and run the warm-up jobs, so that the first real job loads nothing.

    Raises:
        RuntimeError: `gpu` was requested and torch sees none, or a warm-up job failed.
    """
    environment = device.create_context(mode)
    run(mode)
    return environment


def prepare() -> Environment | None:
    """Do all that can be done before a fork; the workers' environment, if that is all of it."""
    fork_server.import_all_modules()
    languages.names()  # reads the entry points
    for runtime in languages.used_runtimes():
        runtime.preload()
    left_behind.settings()
    standard_state.read_state()  # finds where the values are, 0.2 s
    if not languages.is_interpreting():
        return None
    with fork_server.one_thread(), job_sources.temporary_scratch():
        environment = warm_up("interpreter")
    remote_calls.name_record()
    return environment


def run(
    mode: Mode,
    is_wanted: Callable[[], bool] = lambda: False,
    is_wanted_before_timing: Callable[[], bool] = lambda: False,
) -> bool:
    """Validate and time, or compile, a small version; return whether all steps were run.

    Args:
        mode: how kernels are run.
        is_wanted: returns whether a real job waits; called before each step.
        is_wanted_before_timing: the same before a step for timings.

    Raises:
        RuntimeError: the kernel did not pass, so no result of this process is reliable.
    """
    sample = device.kernel_runtime().warm_up()
    if sample is None:
        _freeze()
        return True
    small = WarmUpVersion(OpRef(name=sample.op), _version(sample))
    with _shared_cache(small, mode):
        done = not any(is_wanted() or step(small) for step in STEPS[mode])
        if done and mode == "gpu":
            done = not any(is_wanted() or build() for build in _missing_launchers())
    _freeze()  # before the wait for a time in which nobody validates, which a job may end
    if done and mode in TIMING_STEPS:
        with _shared_cache(small, mode):
            done = not any(is_wanted_before_timing() or step(small) for step in TIMING_STEPS[mode])
        if done:
            _freeze()
    return done


def _shared_cache(sample: WarmUpVersion, mode: Mode) -> AbstractContextManager[None]:
    if mode != "gpu":
        return nullcontext()
    return compile_cache((sample.version,), is_warm_up=True)  # 4 s on an H200


def _freeze() -> None:
    """Let later collections skip what was imported: 0.1 s each, with torch."""
    if torch.cuda.is_initialized():
        torch.cuda.empty_cache()
    gc.collect()
    gc.freeze()


def _missing_launchers() -> Sequence[Callable[[], None]]:
    return device.kernel_runtime().missing_launchers()


class WarmUpVersion(NamedTuple):
    """The version that warms a worker up."""

    op: OpRef
    version: VersionRef


def _version(sample: WarmUp) -> VersionRef:
    source = sample.path.read_text()
    return VersionRef(
        version="v1_baseline",
        attempt=1,
        source=source,
        sha256=hashlib.sha256(source.encode()).hexdigest(),
        entry=sample.entry,
        header_lines=0,
        cell_offset=0,
        shown_path=sample.path.name,
    )


def _compile(sample: WarmUpVersion) -> None:
    compiling.run(
        CompileJob(op=sample.op, version=sample.version, sizes=("small",)), SilentReporter()
    )


def _compile_in_process(sample: WarmUpVersion) -> None:
    form: compile_ahead.Form = ((64, 4096), "float32", (), ())
    order = compile_ahead.order(sample.op, sample.version, form, Target())
    compile_processes.warm_up({**order, "warm_up": True}, WARM_COMPILE_PROCESSES)


def _subject(sample: WarmUpVersion, where: torch.device) -> Subject:
    job = ValidateJob(op=sample.op, version=sample.version, seed=0)
    return validate_job.load_subject(job, operators.load(sample.op.name), where)


def _call(sample: WarmUpVersion, where: torch.device, shape: tuple[int, ...]) -> None:
    subject, case = _subject(sample, where), Case(shape=shape, dtype="float32", seed=0)
    subject.guarded_call(subject.make_inputs(case))


def _validate(
    sample: WarmUpVersion, where: torch.device, shape: tuple[int, ...], dtype: str
) -> None:
    _run_case(_subject(sample, where), Case(shape=shape, dtype=dtype, seed=0))


def _run_case(subject: Subject, case: Case) -> None:
    result, _ = one_case.run_case(subject, case)
    if result.status.failed:
        message = result.error.message if result.error else result.reason
        raise RuntimeError(f"the warm-up failed on {subject.device}: {message}")


def _judge_any_values(sample: WarmUpVersion, where: torch.device, dtype: str) -> None:
    """Make the inputs of a case of each kind in a plan, and validate two that are not finite.

    CUDA loads each of torch's kernels when it is first launched, which takes up to 20 ms: of a full
    plan of 1.5 s that was 0.25 s.
    """
    op = operators.load(sample.op.name)
    job = PlanJob(op=sample.op, dtypes=(dtype,), plan="full", seed=0, device_kind="gpu")
    cases = case_plan.plan_cases(op, job, case_plan.DeviceFacts()).cases
    drawn = [c for c in cases if math.prod(c.shape) <= MOST_DRAWN]
    kinds = {c.special: c for c in drawn} | {c.regime: c for c in drawn}
    for case in kinds.values():
        few = case_inputs.has_few_elements(op, case)  # drawn on the CPU
        own = case.evolve(shape=SHAPE_ON_GPU, layouts=()) if few else case
        case_inputs.make_pristine(op, own, where)
    subject = _subject(sample, where)
    for shape in (SHAPE_ON_GPU, SHAPE_ON_CPU):
        _run_case(subject, Case(shape=shape, dtype=dtype, special="nonfinite", seed=0))


def _time(sample: WarmUpVersion, sizes: tuple[str, ...]) -> None:
    """Time the version in the process that times versions and in this one, at the same time.

    The times mean nothing; everything that a timing loads is loaded.
    """
    here = partial(time_sample, sample.op, sample.version, sizes)
    if not (link := subject_process.link()):
        here()
        return
    errors: list[Exception] = []
    link.request(
        f"{__name__}:time_sample", Warm, meanwhile=partial(_collect_error, here, errors),
        op=sample.op, version=sample.version, sizes=sizes,
    )  # fmt: skip
    if errors:
        raise errors[0]


def _collect_error(call: Callable[[], object], errors: list[Exception]) -> None:
    try:
        call()
    except Exception as error:  # noqa: BLE001 (raised once the other process has answered)
        errors.append(error)


class Warm(Value):
    """The end of a warm-up step in the subject process."""


def time_sample(op: OpRef, version: VersionRef, sizes: tuple[str, ...]) -> Warm:
    """Time the version that warms a worker up, in this process; free the GPU's memory again."""
    _time_here(WarmUpVersion(op, version), sizes)
    _freeze()
    return Warm()


def _time_here(sample: WarmUpVersion, sizes: tuple[str, ...]) -> None:
    job = BenchJob(
        op=sample.op, versions=(sample.version,), sizes=sizes, runs=2, dtype="float32", seed=0,
        budget_s=0,
    )  # fmt: skip
    op, versions = operators.load(sample.op.name), (load_version(sample.version),)
    bench_job.measure(job, op, versions, SilentReporter(), peak_rates=None)


_ON_CPU = partial(_validate, where=CPU, shape=(8, 8))
_ON_GPU = partial(_validate, where=GPU, shape=SHAPE_ON_GPU)
DTYPES = ("float32", "float16", "bfloat16")
# Short steps, for a job may come at any time.
STEPS: dict[Mode, tuple[Callable[[WarmUpVersion], None], ...]] = {
    "compiler": (_compile, _compile_in_process),
    "interpreter": (partial(_ON_CPU, dtype="float32"), partial(_ON_CPU, dtype="float16")),
    "gpu": (
        partial(_call, where=GPU, shape=SHAPE_ON_GPU),
        *(partial(_ON_GPU, dtype=dtype) for dtype in DTYPES),
        *(partial(_judge_any_values, where=GPU, dtype=dtype) for dtype in DTYPES),
    ),
}
TIMING_STEPS: dict[Mode, tuple[Callable[[WarmUpVersion], None], ...]] = {
    "gpu": (partial(_time, sizes=("small",)), partial(_time, sizes=("medium", "large")))
}
