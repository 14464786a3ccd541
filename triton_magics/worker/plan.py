"""What a validation would run, told without a version."""

from __future__ import annotations

import torch

from triton_magics.engine.protocol import Answer, PlanJob
from triton_magics.model import Plan
from triton_magics.worker.cases import plan
from triton_magics.worker.load import load_op
from triton_magics.worker.report import Reporter
from triton_magics.worker.skips import never_here, not_run
from triton_magics.worker.validate import check_dtypes

_DEVICES = {"gpu": torch.device("cuda", 0), "interpreter": torch.device("cpu")}


def run(job: PlanJob, report: Reporter) -> tuple[Answer, bool]:
    """The plan; nothing of it is run, so any process can tell it."""
    report.stage("planning")
    op = load_op(job.op)
    dtypes = job.dtypes or op.dtypes
    check_dtypes(op, dtypes)
    cases = plan(op, job, dtypes)
    reasons = [(c, never_here(c, _DEVICES[job.device_kind], dtypes[0])) for c in cases]
    return Plan(
        op=job.op.name,
        plan=job.plan,
        seed=job.seed,
        dtypes=dtypes,
        cases=cases,
        not_run=tuple(not_run(c, why) for c, why in reasons if why),
    ), job.op.path is not None
