"""Tests of the side effects of a call."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
import torch

from tests.harness.kit import CPU, KERNELS, job_for
from triton_magics import operators
from triton_magics.harness.correctness.case_inputs import make_inputs
from triton_magics.harness.correctness.late_work import LEFT_STREAM
from triton_magics.harness.correctness.subject import Subject
from triton_magics.harness.load import load_version
from triton_magics.model import Case


@dataclass(frozen=True)
class Stream:
    """One of which only the name is real."""

    name: str

    def synchronize(self) -> None:
        """Do nothing: there is no device."""


OWN, ITS = Stream("own"), Stream("its")


@pytest.mark.parametrize(("left", "message"), [(ITS, LEFT_STREAM), (OWN, None)])
def test_call_that_changes_the_current_stream_is_reported(
    monkeypatch: pytest.MonkeyPatch, left: Stream, message: str | None
) -> None:
    current = [OWN]
    monkeypatch.setattr(torch.cuda, "current_stream", lambda: current[-1])
    monkeypatch.setattr(torch.cuda, "set_stream", current.append)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    began: list[Stream] = []

    def call(x: torch.Tensor) -> torch.Tensor:
        began.append(torch.cuda.current_stream())
        torch.cuda.set_stream(ITS)
        torch.cuda.set_stream(left)
        return x.softmax(-1)

    op, job = operators.load("softmax"), job_for(KERNELS / "softmax_right.py")
    version = replace(load_version(job.version), call=call)
    subject = Subject(op, version, job, torch.device("cuda"), "")
    inputs = make_inputs(op, Case(shape=(7, 13), dtype="float32", seed=1), CPU)
    first = subject.guarded_call(inputs)
    second = subject.call(inputs.arguments)
    assert (first.late_work, second.late_work) == (message, message)
    assert began == [OWN, OWN]
