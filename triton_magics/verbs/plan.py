"""Show the cases of a validation without running them."""

from __future__ import annotations

from typing import Annotated

from triton_magics.execution.job_requests import PlanJob
from triton_magics.model import Plan
from triton_magics.session import Session, outcomes
from triton_magics.session.checks import choose_seed
from triton_magics.verbs import _fields as fields
from triton_magics.verbs._base import Request, Verb, option


class PlanRequest(Request):
    """An op, and the cases of its plan."""

    op: fields.Op
    dtypes: fields.Dtypes = None
    plan: fields.Plan = "full"
    shapes: fields.Shapes = ()
    seed: Annotated[
        fields.Seed,
        option(
            "of the plan (default: a new one); a validation with this seed runs the same",
            metavar="N",
        ),
    ] = None


def run(session: Session, request: PlanRequest) -> Plan:
    """Return the cases that a validation would run, and those that this device leaves out.

    Raises:
        UnknownName: a dtype that the op does not declare.
    """
    name = session.canonical(request.op)
    session.check_dtypes(name, request.dtypes)
    job = PlanJob(
        op=session.jobs.op_ref(name),
        dtypes=tuple(request.dtypes) if request.dtypes else None,
        plan=request.plan,
        shapes=tuple(request.shapes),
        own_shapes=session.own_shapes(name),
        seed=choose_seed(request.seed),
        device_kind=session.jobs.device_kind,
    )
    outcome = session.jobs.manager.run(job, limits=session.jobs.limits())
    outcomes.check_ended(outcome)
    plan = outcomes.plan(outcome, name)
    return session.finish(plan.evolve(device=session.jobs.executor.state().device))


VERB = Verb(
    name="plan",
    request=PlanRequest,
    run=run,
    help="Shows the cases of a validation, and what this device leaves out; runs none.",
    example="%triton_plan softmax --quick",
    rank=45,
    runs_jobs=True,
)
