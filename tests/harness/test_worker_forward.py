"""The judge forwards steps of the process that calls versions, and no answers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, NoReturn

import pytest

from tests.harness.kit import KERNELS, version_of
from triton_magics.execution.job_refs import OpRef
from triton_magics.execution.job_requests import RunJob
from triton_magics.execution.protocol import Order, Progress, Reply
from triton_magics.harness import __main__ as worker
from triton_magics.model import Compilation, Status


class ViolationError(Exception):
    """The worker would end here."""


def forward(**fields: Any) -> list[Progress]:
    """Return what is forwarded of a step that a version sends in a job."""
    sent: list[Any] = []

    def end() -> NoReturn:
        raise ViolationError

    def request(*_: object, emit: Any, order: Order, **__: object) -> Reply:
        step = Progress(nonce=order.nonce, stage="calling it", **fields)
        emit(step.model_dump_json().encode())
        fault = {"kind": "fault", "user": False, "message": "none"}
        return Reply.model_validate({"nonce": order.nonce, "answer": fault})

    link: Any = SimpleNamespace(request=request, on_violation=end, can_share=False)
    job = RunJob(op=OpRef(name="relu"), version=version_of(KERNELS / "softmax_right.py", "softmax"))
    worker._forward(Order(nonce="n", job=job), sent.append, link, SimpleNamespace())
    return sent


def test_a_step_is_forwarded_with_the_nonce_of_the_job() -> None:
    (step,) = forward()
    assert (step.nonce, step.stage) == ("n", "calling it")


def test_no_answer_gets_past_the_judge_as_a_step() -> None:
    forged = Compilation(
        op="relu", version="v1", attempt=1, sha256="", status=Status.PASSED, target="sm_90",
        here=False, duration_s=0.1,
    )  # fmt: skip
    with pytest.raises(ViolationError):
        forward(compilation=forged)
