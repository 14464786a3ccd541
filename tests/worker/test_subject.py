"""What a call leaves behind, beside its output."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
import torch

from tests.worker.harness import CPU, KERNELS, job_for
from triton_magics import ops
from triton_magics.model import Case
from triton_magics.worker.cases import make_inputs
from triton_magics.worker.launches import Launches
from triton_magics.worker.load import load_version
from triton_magics.worker.subject import LEFT_STREAM, Subject, another_call, guarded_call


@dataclass(frozen=True)
class Stream:
    """One of which only the name is real."""

    name: str

    def synchronize(self) -> None:
        """There is nothing to wait for."""


OWN, ITS = Stream("own"), Stream("its")


@pytest.mark.parametrize(("left", "said"), [(ITS, LEFT_STREAM), (OWN, None)])
def test_a_call_that_leaves_torch_on_another_stream_is_told_and_the_next_begins_on_its_own(
    monkeypatch: pytest.MonkeyPatch, left: Stream, said: str | None
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

    op, job = ops.load("softmax"), job_for(KERNELS / "softmax_right.py")
    version = replace(load_version(job.version), call=call)
    subject = Subject(op, version, job, torch.device("cuda"), "")
    inputs = make_inputs(op, Case(shape=(7, 13), dtype="float32", seed=1), CPU)
    first = guarded_call(subject, inputs, Launches())
    second = another_call(subject, inputs.given, first)
    assert (first.late, second.late) == (said, said)
    assert began == [OWN, OWN]
