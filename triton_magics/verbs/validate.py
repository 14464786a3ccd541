"""Check a version against the reference in float64."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from triton_magics.errors import Interrupted, TritonMagicsError
from triton_magics.execution.job_requests import ValidateJob
from triton_magics.model import KernelSource, Validation, Validations
from triton_magics.session import Session, outcomes
from triton_magics.session.checks import choose_seed
from triton_magics.verbs import _log_files
from triton_magics.verbs._base import Request, Switch, Verb, option, place
from triton_magics.verbs._fields import Dtypes, Op, Plan, Seed, Shapes, Timeout

Tolerance = Annotated[float | None, Field(ge=0, lt=1)]


class ValidateRequest(Request):
    """A version, the cases that it is checked on, and the tolerance."""

    op: Op
    version: Annotated[
        str,
        place(
            "v2; or all: one after the other; not needed with --plan",
            names="version all",
            nargs="?",
            doc="`v2`, or `all`, which gives a `Validations`",
        ),
    ]
    dtypes: Dtypes = None
    plan: Plan = "full"
    shapes: Shapes = ()
    only: Annotated[
        str,
        option(
            "only cases whose label is, or has, these words",
            metavar="WORDS",
        ),
    ] = ""
    inputs: Annotated[
        str | None,
        option(
            "a file of the workspace in place of the cases: x.safetensors, .npz, .npy or .pt",
            metavar="FILE",
        ),
    ] = None
    seed: Annotated[
        Seed, option("the seed of an earlier result, to replay its plan", metavar="N")
    ] = None
    rtol: Annotated[
        Tolerance, option("another relative tolerance; leaves a badge", metavar="X")
    ] = None
    atol: Annotated[
        Tolerance, option("another absolute tolerance; leaves a badge", metavar="X")
    ] = None
    sanitize: Annotated[
        bool, option("a case under compute-sanitizer too: memcheck, racecheck, initcheck")
    ] = False
    timeout: Timeout = None


def run(session: Session, request: ValidateRequest) -> Validation | Validations:
    """Check a version against a float64 oracle, on hostile inputs.

    Raises:
        UnknownVersion: no such version.
        UnknownName: a dtype that the op does not declare.
    """
    if request.version == "all":
        return _run_all(session, request)
    source = session.source(request.op, request.version)
    session.gate("validate", source.op)
    session.check_dtypes(source.op, request.dtypes)
    job = job_of(session, request, source)
    limits = session.jobs.limits(request.timeout)
    outcome = session.jobs.manager.run(job, key=source.sha256, limits=limits)
    validation = outcomes.validation(outcome, job)
    validation = session.jobs.locate_access(validation, source)
    try:
        validation = session.jobs.add_context(validation, source)
    except (KeyboardInterrupt, TritonMagicsError) as error:
        # The verdict stands, without the compiler's figures.
        session.record(source.op, "validated", validation, source=source)
        session.last = validation
        if isinstance(error, TritonMagicsError):
            raise
        raise Interrupted(validation) from None
    session.record(source.op, "validated", validation, source=source)
    _log_files.write_log_if_set(session, source.op)
    return session.finish(validation)


def _run_all(session: Session, request: ValidateRequest) -> Validations:
    name = session.canonical(request.op)
    each = [
        run(session, request.evolve(op=name, version=version))
        for version in session.every_version(name)
    ]
    validations = tuple(v for v in each if isinstance(v, Validation))
    return session.finish(Validations(validations=validations))


def job_of(session: Session, request: ValidateRequest, source: KernelSource) -> ValidateJob:
    """Return the job of a request."""
    interpreted = session.jobs.device_kind == "interpreter"
    return ValidateJob(
        op=session.jobs.op_ref(source.op, request.inputs),
        version=session.jobs.version_ref(source),
        dtypes=tuple(request.dtypes) if request.dtypes else None,
        plan=request.plan,
        shapes=tuple(request.shapes),
        only=request.only,
        own_shapes=session.own_shapes(source.op),
        sanitize=request.sanitize,
        seed=choose_seed(request.seed),
        rtol=request.rtol,
        atol=request.atol,
        budget_s=session.settings.validate_budget_s if interpreted else None,
        compile_s=session.settings.compile_s,
    )


VERB = Verb(
    name="validate",
    request=ValidateRequest,
    run=run,
    help="Checks a version against the reference in float64, on awkward shapes and hostile values.",
    example="%triton_validate softmax v2 --seed 83114 --shape 257x1023",
    rank=40,
    judges=True,
    long_running=True,
    switches=(
        Switch(
            "--plan",
            "plan",
            "show the cases, and what this device leaves out, and run none",
        ),
    ),
)
