"""Show the compiled code of a version."""

from __future__ import annotations

from typing import Annotated, Literal

from triton_magics.errors import BadValue
from triton_magics.model import Compilation, Status
from triton_magics.session import Session
from triton_magics.verbs._base import Request, Verb, option, rule
from triton_magics.verbs._fields import Op, Version
from triton_magics.verbs._requirements import find_violations, read_requirements

Form = Literal["ptx", "sass"]


def _capability(name: str) -> int:
    """Return 90 of `sm_90`.

    Raises:
        BadValue: not of that form.
    """
    digits = name.removeprefix("sm_")
    if not digits.isdigit() or not 70 <= int(digits) <= 130:
        raise BadValue(f"{name!r} is no target: write sm_80, sm_89, sm_90, sm_100 or sm_120")
    return int(digits)


class InspectRequest(Request):
    """A version, a GPU to compile for, and listings."""

    op: Op
    version: Version
    target: Annotated[
        str | None,
        rule(_capability),
        option(
            "compile for this one, which need not be here: sm_90",
            names="target",
            metavar="GPU",
            doc="`sm_90`; by default the GPU that is here, else the one of the settings",
        ),
    ] = None
    ptx: Annotated[bool, option("show the PTX")] = False
    sass: Annotated[bool, option("show the SASS, the machine's own code")] = False
    require: Annotated[
        str | None,
        rule(read_requirements),
        option(
            "fail unless every kernel meets this: registers<=64,spills==0; also shared, occupancy, "
            "waves, warps, stages",
            metavar="LIMITS",
        ),
    ] = None


def run(session: Session, request: InspectRequest) -> Compilation:
    """Return registers, spills, shared memory, occupancy, waves, widths of loads, tensor cores.

    On a GPU of the kernels as it runs them; for another `target`, or without a GPU, of what
    the compiler makes for that. With `require` it fails where a kernel does not meet the limits.

    Raises:
        BadValue: a requirement on a figure that does not exist.
        UnknownVersion: it is not written yet.
    """
    source = session.source(request.op, request.version)
    target = _capability(request.target) if request.target else None
    here = target is None and session.jobs.device_kind == "gpu"
    forms: list[tuple[Form, bool]] = [("ptx", request.ptx), ("sass", request.sass)]
    compilation = session.jobs.compile(
        source,
        target or session.jobs.default_target(),
        sizes=tuple(session.facts_of(source.op).sizes),
        here=here,
        detail=True,
        listings=tuple(form for form, is_requested in forms if is_requested),
    )
    if request.require and compilation.passed:
        compilation = _check_requirements(compilation, request.require)
    return session.finish(compilation)


def _check_requirements(compilation: Compilation, text: str) -> Compilation:
    """Return the compilation, failed where a kernel does not meet the requirements."""
    violations = tuple(find_violations(read_requirements(text), compilation.kernels))
    if not compilation.kernels:
        violations = (f"no kernel was compiled, so {text} is not met",)
    status = Status.FAILED if violations else Status.PASSED
    return compilation.evolve(status=status, required=text, violations=violations)


VERB = Verb(
    name="inspect",
    request=InspectRequest,
    run=run,
    help="Registers, spills, shared memory, occupancy, waves, loads, tensor cores; GPU or not.",
    example="%triton_inspect softmax v2 --target sm_80",
    rank=110,
    judges=True,
)
