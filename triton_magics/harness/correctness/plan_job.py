"""Plan job: return the cases that a validation would run; needs no version."""

from __future__ import annotations

from triton_magics.execution.job_answers import Answer
from triton_magics.execution.job_requests import PlanJob
from triton_magics.harness.correctness.case_plan import DeviceFacts, plan_cases
from triton_magics.harness.correctness.skip_rules import not_run_result, unsupported_reason
from triton_magics.harness.correctness.validate_job import check_dtypes
from triton_magics.harness.load import load_op
from triton_magics.harness.process.device import CPU, GPU, kernel_runtime
from triton_magics.harness.process.reporter import Reporter

_DEVICES = {"gpu": GPU, "interpreter": CPU}


def run(job: PlanJob, report: Reporter) -> tuple[Answer, bool]:
    """Return the plan without running a case."""
    report.stage("planning")
    op = load_op(job.op)
    dtypes = job.dtypes or op.dtypes
    check_dtypes(op, dtypes)
    device, runtime = _DEVICES[job.device_kind], kernel_runtime(job.language)
    plan = plan_cases(op, job, DeviceFacts.of(device, runtime, op))
    reasons = [(c, unsupported_reason(op, c, device, dtypes[0], runtime)) for c in plan.cases]
    not_run = tuple(not_run_result(c, why) for c, why in reasons if why)
    return plan.evolve(not_run=not_run), job.op.source is not None
