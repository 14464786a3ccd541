"""Is this version right? Every case of the plan, every check on it, one verdict."""

from __future__ import annotations

import math
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from triton_magics import ops
from triton_magics.engine.protocol import Answer, ValidateJob
from triton_magics.model import (
    SIZES,
    Case,
    CaseResult,
    CaseStatus,
    KernelError,
    Status,
    Validation,
)
from triton_magics.worker import mismatch, oracle
from triton_magics.worker.cases import (
    Inputs,
    make_inputs,
    make_pristine,
    plan,
    same_bits,
)
from triton_magics.worker.guard import GuardNewMemory, broken, guarding
from triton_magics.worker.launches import Launches, tunes_itself, watching
from triton_magics.worker.load import (
    Loaded,
    LoadError,
    UserFault,
    compile_cache,
    explain,
    load_op,
    load_version,
    raised_in,
)
from triton_magics.worker.lock import gpu_lock
from triton_magics.worker.precompile import precompile
from triton_magics.worker.pretend import pretending
from triton_magics.worker.report import Reporter
from triton_magics.worker.resources import environment, this_device

REFUSALS = (ValueError, TypeError, NotImplementedError, AssertionError)
_NO_BFLOAT16 = "Triton's interpreter computes bfloat16 wrongly without a word; a GPU is needed"
_ONE_MEDIUM = "the interpreter runs medium once, in the first dtype"
_NO_LARGE = "too large for the interpreter: about 4 s a launch and more"
THOROUGH_ELEMENTS = 300_000
FEW_PROGRAMS = 64  # about a millisecond each in the interpreter


@dataclass(frozen=True)
class Subject:
    """What is being validated, and with what."""

    op: ops.Op
    version: Loaded
    job: ValidateJob
    device: torch.device
    source: str

    @property
    def interpreted(self) -> bool:
        """Whether Triton's interpreter runs it, on the CPU."""
        return self.device.type == "cpu"


@dataclass(frozen=True)
class Call:
    """One guarded call of the version."""

    value: Any
    launches: Launches
    memory: GuardNewMemory
    late: str | None


def run(job: ValidateJob, report: Reporter) -> tuple[Answer, bool]:
    """The whole validation; and whether this process must not be used again."""
    started = time.monotonic()
    device = this_device()
    report.environment(environment())
    op = load_op(job.op)
    dtypes = job.dtypes or op.dtypes
    _check_dtypes(op, dtypes)
    cases = plan(op, job, dtypes)
    report.planned(tuple(_not_run(c, "not reached") for c in cases))
    report.stage("loading")
    base = Validation(
        op=job.op.name,
        version=job.version.version,
        attempt=job.version.attempt,
        sha256=job.version.sha256,
        status=Status.FAILED,
        plan=job.plan,
        seed=job.seed,
        dtypes=dtypes,
        environment=environment(),
        badges=_badges(job),
    )
    try:
        with pretending(device):
            version = load_version(job.version)
    except LoadError as error:
        failed = explain(error, job.version)
        return _done(base, (), started, error=failed, status=Status.RUNTIME_ERROR), True
    body = "".join(
        Path(job.version.path).read_text().splitlines(keepends=True)[job.version.header_lines :]
    )
    subject = Subject(op, version, job, device, body)
    uuid = environment().gpu_uuid
    what = f"validating {job.op.name} {job.version.version}"
    wait = lambda said: report.stage(said, patience_s=60)  # noqa: E731
    with (
        gpu_lock(uuid, alone=False, what=what, waiting=wait),
        compile_cache((job.version,)),
    ):
        report.stage("compiling", patience_s=job.compile_s)
        precompile(subject.op, version, cases, device)
        results, evidence, retire = _run_cases(subject, cases, report, started)
    verdict = _done(base, results, started, evidence=evidence)
    return verdict, retire


def _check_dtypes(op: ops.Op, dtypes: tuple[str, ...]) -> None:
    unknown = [d for d in dtypes if d not in op.dtypes]
    if unknown:
        raise UserFault(
            f"{op.name} has no dtype {unknown[0]!r}; it declares {', '.join(op.dtypes)}"
        )


def _badges(job: ValidateJob) -> tuple[str, ...]:
    badges = []
    if job.rtol is not None or job.atol is not None:
        said = [f"{n}={v:g}" for n, v in (("rtol", job.rtol), ("atol", job.atol)) if v is not None]
        badges.append(f"your own tolerance: {', '.join(said)}")
    if job.plan == "quick":
        badges.append("quick")
    if job.shapes:
        badges.append("only some shapes")
    return tuple(badges)


def _run_cases(
    subject: Subject, cases: tuple[Case, ...], report: Reporter, started: float
) -> tuple[tuple[CaseResult, ...], tuple[str, ...], bool]:
    """Every case's result, the names of the Triton kernels seen, whether to retire."""
    results: list[CaseResult] = []
    kernels: dict[str, None] = {}
    stop: str | None = None
    patience_s = subject.job.compile_s if tunes_itself(subject.version.module) else 0.0
    for i, case in enumerate(cases):
        reason = stop or _why_not(subject, case, results, started)
        if reason:
            results.append(_not_run(case, reason))
            continue
        report.stage(f"validating {case.label}", i, len(cases), patience_s=patience_s)
        result, seen = run_case(subject, case)
        kernels.update(dict.fromkeys(seen))
        results.append(result)
        report.case(result)
        if _sticky(result):
            stop = f"not run: {case.label} left the GPU's context unusable"
    return tuple(results), tuple(kernels), stop is not None


def _why_not(subject: Subject, case: Case, results: list[CaseResult], started: float) -> str | None:
    """Why a case is not run here, or None. In the interpreter time is short and bfloat16 wrong."""
    if not subject.interpreted:
        return None
    if case.dtype == "bfloat16":
        return _NO_BFLOAT16
    if case.size == "large":
        return _NO_LARGE
    if case.size == "medium" and case.dtype != (subject.job.dtypes or subject.op.dtypes)[0]:
        return _ONE_MEDIUM
    spent = time.monotonic() - started
    budget = subject.job.budget_s
    if budget is not None and spent > budget:
        return f"the interpreter's budget of {budget:g} s was used up"
    if budget is not None and case.size == "medium":
        small = [r.duration_s or 0 for r in results if r.case.size == "small"]
        if small and spent + _grown(subject, small[0]) > budget:
            return f"it would have passed the interpreter's budget of {budget:g} s"
    return None


def _grown(subject: Subject, small_s: float) -> float:
    """A guess of medium's seconds from small's: as programs grow, or as a product's loops do."""
    small, medium = subject.op.sizes["small"], subject.op.sizes["medium"]
    if subject.op.op_class == "matmul":
        return small_s * math.prod(b / max(a, 1) for a, b in zip(small, medium, strict=False))
    programs = [_programs(subject, Case(shape=s, dtype="float32", seed=0)) for s in (small, medium)]
    return small_s * programs[1] / programs[0]


def _programs(subject: Subject, case: Case) -> int:
    """Program instances of one call, without running them; 1 where it can't be told."""
    given = make_pristine(subject.op, case, subject.device)
    try:
        with torch.no_grad(), pretending(subject.device), watching(suppress=True) as seen:
            subject.version.call(*given)
    except Exception:  # noqa: BLE001 (it needs what its kernels would have made)
        return max(seen.programs, 1)
    return max(seen.programs, 1)


def _not_run(case: Case, reason: str) -> CaseResult:
    return CaseResult(case=case, status=CaseStatus.NOT_RUN, reason=reason)


def _sticky(result: CaseResult) -> bool:
    message = result.error.message if result.error else ""
    words = ("CUDA error", "illegal memory access", "misaligned address", "device-side assert",
             "unspecified launch failure", "illegal instruction")  # fmt: skip
    return result.status is CaseStatus.RUNTIME_ERROR and any(w in message for w in words)


# ---------------------------------------------------------------------------------- one case


def run_case(subject: Subject, case: Case) -> tuple[CaseResult, tuple[str, ...]]:
    """One case with all its checks, and the Triton kernels that it launched."""
    begun = time.monotonic()
    try:
        inputs = make_inputs(subject.op, case, subject.device)
    except torch.OutOfMemoryError:
        return _not_run(case, "its inputs do not fit the GPU's free memory"), ()
    launches = Launches()
    try:
        with watching() as launches:
            call = guarded_call(subject, inputs, launches)
        result = _judged(subject, case, inputs, call)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 (whatever the version raises is a verdict)
        result = _raised(subject, case, error, launched=bool(launches.names))
    finished = result.model_copy(update={"duration_s": time.monotonic() - begun})
    return finished, tuple(launches.names)


def guarded_call(subject: Subject, inputs: Inputs, launches: Launches) -> Call:
    """The version's output, with new memory guarded and poisoned, and what went on after it."""
    threads = set(threading.enumerate())
    with torch.no_grad(), guarding() as memory, pretending(subject.device):
        value = subject.version.call(*inputs.given)
    late = _late_work(subject, value)
    left = [t.name for t in threading.enumerate() if t not in threads and not t.daemon]
    if left:
        late = f"the call left a thread running: {left[0]}"
    return Call(value, launches, memory, late)


def _late_work(subject: Subject, value: Any) -> str | None:
    """Whether outputs still changed after the current stream was done."""
    if subject.interpreted:
        return None
    tensors = [t for t in oracle.outputs_of(value) if type(t) is torch.Tensor]
    torch.cuda.current_stream().synchronize()
    snapshots = [t.clone() for t in tensors]
    torch.cuda.synchronize()
    if all(same_bits(t, s) for t, s in zip(tensors, snapshots, strict=True)):
        return None
    return "the output still changed after its stream was done: work was left on another stream"


def _raised(subject: Subject, case: Case, error: BaseException, *, launched: bool) -> CaseResult:
    """The verdict on an exception out of the version's call."""
    told = explain(error, subject.version.ref, subject.version.module)
    refusal = (
        isinstance(error, REFUSALS) and not launched and raised_in(error, subject.version.ref.path)
    )
    if refusal:
        return CaseResult(
            case=case, status=CaseStatus.REJECTED, reason=str(error) or told.kind, error=told
        )
    if isinstance(error, torch.OutOfMemoryError):
        return CaseResult(
            case=case, status=CaseStatus.OUT_OF_MEMORY, reason=told.message[:300], error=told
        )
    compiler = ("CompilationError", "UnsupportedLanguageConstruct", "CompileTimeAssertionFailure")
    is_compile = told.kind in compiler or "ptxas" in told.message.lower()
    status = CaseStatus.COMPILE_ERROR if is_compile else CaseStatus.RUNTIME_ERROR
    return CaseResult(case=case, status=status, reason=told.message[:300], error=told)


def _judged(subject: Subject, case: Case, inputs: Inputs, call: Call) -> CaseResult:
    """The checks that need no more calls, then the values, then the checks that call again."""
    failed = _outside(case, inputs, call)
    if failed:
        return failed
    try:
        expected = oracle.expect(
            subject.op, inputs.pristine, case, subject.job.rtol, subject.job.atol
        )
    except torch.OutOfMemoryError:
        return _not_run(case, "its float64 oracle does not fit the GPU's free memory")
    failed = _wrong_form(case, inputs.given, call.value, expected)
    if failed:
        return failed
    result = _compared(subject, case, inputs, call.value, expected)
    if result.status is not CaseStatus.PASSED:
        return result
    if not call.launches.names:
        return _fail(case, CaseStatus.NOT_TRITON, "no Triton kernel ran: torch made the output")
    return _called_again(subject, case, inputs, call=call, expected=expected, result=result)


def _fail(case: Case, status: CaseStatus, reason: str) -> CaseResult:
    return CaseResult(case=case, status=status, reason=reason)


def _outside(case: Case, inputs: Inputs, call: Call) -> CaseResult | None:
    """Writes outside the tensors, changed inputs, work left behind."""
    hits = broken([*inputs.guards, *call.memory.guarded])
    if hits:
        return _fail(case, CaseStatus.OUT_OF_BOUNDS, hits[0])
    if call.late:
        return _fail(case, CaseStatus.UNFINISHED_WORK, call.late)
    if changed := inputs.changed():
        return _fail(case, CaseStatus.MUTATED_INPUT, changed)
    return None


def _wrong_form(
    case: Case, given: tuple[Any, ...], value: Any, expected: oracle.Expected
) -> CaseResult | None:
    """Type, count, shape, dtype, device and aliasing of the outputs."""
    got = oracle.outputs_of(value)
    if expected.single == isinstance(value, tuple | list) or len(got) != len(expected.native):
        want = "one tensor" if expected.single else f"{len(expected.native)} tensors"
        return _fail(case, CaseStatus.WRONG_TYPE, f"returned {_kind(value)}, should be {want}")
    for tensor, native in zip(got, expected.native, strict=True):
        if type(tensor) is not torch.Tensor:
            return _fail(
                case, CaseStatus.WRONG_TYPE, f"returned {_kind(tensor)}, should be a torch.Tensor"
            )
        if tensor.shape != native.shape:
            return _fail(
                case,
                CaseStatus.WRONG_SHAPE,
                f"returned {_shape(tensor)}, should be {_shape(native)}",
            )
        if tensor.dtype != native.dtype:
            return _fail(
                case, CaseStatus.WRONG_DTYPE, f"returned {tensor.dtype}, should be {native.dtype}"
            )
        if tensor.device != native.device:
            return _fail(
                case,
                CaseStatus.WRONG_DEVICE,
                f"returned a tensor on {tensor.device}, should be {native.device}",
            )
        if _aliases(tensor, given):
            return _fail(case, CaseStatus.ALIASED, "the output shares memory with an input")
    return None


def _kind(value: Any) -> str:
    return f"a {type(value).__name__}" if value is not None else "None"


def _shape(tensor: torch.Tensor) -> str:
    return "[" + ", ".join(str(n) for n in tensor.shape) + "]"


def _aliases(tensor: torch.Tensor, given: tuple[Any, ...]) -> bool:
    own = tensor.untyped_storage().data_ptr()
    tensors = (x for x in given if isinstance(x, torch.Tensor))
    return tensor.numel() > 0 and any(own == x.untyped_storage().data_ptr() for x in tensors)


def _compared(
    subject: Subject, case: Case, inputs: Inputs, value: Any, expected: oracle.Expected
) -> CaseResult:
    """The values against the oracle, or the op's own check where its output is random."""
    if subject.op.check is not None:
        message = subject.op.check(inputs.pristine, value, lambda *x: _plain(subject, x))
        status = CaseStatus.WRONG_VALUES if message else CaseStatus.PASSED
        share = None if message else 0.0
        return CaseResult(
            case=case, status=status, reason=message, error_share=share, calibrated=True,
            tolerance=expected.tolerance.model_copy(update={"origin": "the op's own check"}),
        )  # fmt: skip
    got = oracle.outputs_of(value)
    judged = [
        oracle.judge(g, v, a)
        for g, v, a in zip(got, expected.values, expected.allowed, strict=True)
    ]
    shared: dict[str, Any] = {
        "case": case,
        "error_share": max(j.error_share for j in judged),
        "max_abs_error": max(j.max_abs_error for j in judged),
        "tolerance": expected.tolerance,
        "calibrated": expected.calibrated,
        "seeds_rule": _seeds_rule(got, expected) if case.dtype == "float32" else None,
    }
    for i, j in enumerate(judged):
        if j.wrong is not None:
            found = mismatch.describe(
                got[i], expected.values[i], expected.allowed[i], j.wrong,
                case=case, source=subject.source, output=i,
            )  # fmt: skip
            return CaseResult(status=CaseStatus.WRONG_VALUES, mismatch=found, **shared)
    return CaseResult(status=CaseStatus.PASSED, **shared)


def _seeds_rule(got: tuple[Any, ...], expected: oracle.Expected) -> bool:
    """`allclose` with torch's own output at 1e-5, as the spec has it."""
    pairs = zip(got, expected.native, strict=True)
    return all(torch.allclose(g, n, atol=1e-5, rtol=1e-5, equal_nan=True) for g, n in pairs)


def _plain(subject: Subject, given: tuple[Any, ...]) -> Any:
    """A call without guards."""
    with torch.no_grad(), pretending(subject.device):
        return subject.version.call(*given)


# --------------------------------------------------------------- checks that call once more


def _called_again(
    subject: Subject,
    case: Case,
    inputs: Inputs,
    *,
    call: Call,
    expected: oracle.Expected,
    result: CaseResult,
) -> CaseResult:
    """Determinism, no-op launches and stale caches, on cases small enough to be cheap."""
    elements = sum(v.numel() for v in expected.values)
    if case.regime != "normal" or elements > THOROUGH_ELEMENTS:
        return result
    if subject.interpreted and call.launches.programs > FEW_PROGRAMS:
        return _noop(subject, case) or result
    first = oracle.outputs_of(call.value)
    again = [oracle.outputs_of(_plain(subject, inputs.given)) for _ in range(2)]
    same = all(same_bits(a, b) for more in again for a, b in zip(first, more, strict=True))
    failed = _stale(subject, case, inputs) or _noop(subject, case)
    return failed or result.model_copy(update={"deterministic": same})


def _noop(subject: Subject, case: Case) -> CaseResult | None:
    """With no Triton launch the output must be wrong, or the kernels did not make it.

    On inputs of their own, so that an answer kept from an earlier call is not taken for torch's.
    """
    other = case.model_copy(update={"seed": case.seed ^ 0xA0})
    inputs = make_inputs(subject.op, other, subject.device)
    try:
        with torch.no_grad(), guarding(), pretending(subject.device), watching(suppress=True):
            value = subject.version.call(*inputs.given)
    except Exception:  # noqa: BLE001 (it needs what its kernels would have made: as it should be)
        return None
    if not _right(subject, other, inputs.pristine, value):
        return None
    return _fail(
        case,
        CaseStatus.NOT_TRITON,
        "with every Triton launch taken out the output is still right: torch makes it",
    )


def _right(subject: Subject, case: Case, pristine: tuple[Any, ...], value: Any) -> bool:
    """Whether an output is right for its inputs; an empty one, or a copy of them, is not."""
    if subject.op.check is not None:
        return not same_values(value, pristine) and subject.op.check(pristine, value, None) is None
    expected = oracle.expect(subject.op, pristine, case, subject.job.rtol, subject.job.atol)
    got = oracle.outputs_of(value)
    if not sum(v.numel() for v in expected.values) or _wrong_form(case, (), value, expected):
        return False
    pairs = zip(got, expected.values, expected.allowed, strict=True)
    return all(oracle.judge(g, v, a).right for g, v, a in pairs)


def same_values(value: Any, pristine: tuple[Any, ...]) -> bool:
    """Whether an output equals one of the inputs."""
    tensors = (x for x in pristine if isinstance(x, torch.Tensor))
    return isinstance(value, torch.Tensor) and any(
        x.shape == value.shape and x.dtype == value.dtype and same_bits(x, value) for x in tensors
    )


def _stale(subject: Subject, case: Case, inputs: Inputs) -> CaseResult | None:
    """The same tensors with new contents must give a new answer."""
    other = case.model_copy(update={"seed": case.seed ^ 0x5EED})
    fresh = make_pristine(subject.op, other, subject.device)
    mixed = []
    for held, new in zip(inputs.given, fresh, strict=True):
        if isinstance(held, torch.Tensor) and held.shape == new.shape:
            held.data.copy_(new)  # .data: the version counter does not see it
            mixed.append(held)
        else:
            mixed.append(new)
    value = _plain(subject, tuple(mixed))
    if subject.op.check is not None:
        message = subject.op.check(fresh, value, None)
        return _fail(case, CaseStatus.STALE, message) if message else None
    if _right(subject, other, fresh, value):
        return None
    return _fail(
        case,
        CaseStatus.STALE,
        "the same tensors with new contents gave a wrong answer: something is cached",
    )


# ----------------------------------------------------------------------------------- verdict


def _done(
    base: Validation,
    results: tuple[CaseResult, ...],
    started: float,
    *,
    evidence: tuple[str, ...] = (),
    error: KernelError | None = None,
    status: Status | None = None,
) -> Validation:
    """The validation with its verdict."""
    first = next((r for r in results if r.status.failed), None)
    status, message = (status, None) if status else overall(base, results)
    loosened = any(r.tolerance and r.tolerance.loosened for r in results)
    badges = (*base.badges, "loosened tolerance") if loosened else base.badges
    return base.model_copy(
        update={
            "status": status,
            "cases": results,
            "triton_kernels": evidence,
            "error": error or (first.error if first else None),
            "message": message,
            "badges": badges,
            "duration_s": time.monotonic() - started,
        }
    )


def overall(base: Validation, results: tuple[CaseResult, ...]) -> tuple[Status, str | None]:
    """Passed, or the first thing that speaks against it.

    Passed means: no case failed; every size that can run here passed in every dtype that can;
    and per such dtype at least one passed case was calibrated.
    """
    failed = next((r for r in results if r.status.failed), None)
    if failed:
        kinds = {
            CaseStatus.COMPILE_ERROR: Status.COMPILE_ERROR,
            CaseStatus.RUNTIME_ERROR: Status.RUNTIME_ERROR,
            CaseStatus.OUT_OF_MEMORY: Status.OUT_OF_MEMORY,
        }
        return kinds.get(failed.status, Status.FAILED), None
    ran = [r for r in results if r.status is not CaseStatus.NOT_RUN]
    if ran and all(r.status is CaseStatus.REJECTED for r in ran):
        return Status.REJECTED, f"it refuses every input: {ran[0].reason}"
    for dtype in base.dtypes:
        own = [r for r in ran if r.case.dtype == dtype]
        refused = next(
            (r for r in own if r.case.size in SIZES and r.status is CaseStatus.REJECTED), None
        )
        if refused:
            return Status.REJECTED, f"it refuses {refused.case.label}: {refused.reason}"
        if own and not any(r.calibrated for r in own if r.status is CaseStatus.PASSED):
            return (
                Status.FAILED,
                f"no calibrated case passed in {dtype}: the verdict would mean nothing",
            )
    if not any(r.status is CaseStatus.PASSED for r in ran):
        return Status.FAILED, "no case could be run here"
    return Status.PASSED, None
