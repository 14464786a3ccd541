"""What is being validated, and calls of it with every guard up."""

from __future__ import annotations

import dataclasses
import threading
from dataclasses import dataclass
from typing import Any

import torch

from triton_magics import ops
from triton_magics.engine.protocol import ValidateJob
from triton_magics.model import KernelError
from triton_magics.worker import oracle
from triton_magics.worker.bounds import Bounds, checking_bounds
from triton_magics.worker.cases import Inputs, same_bits
from triton_magics.worker.guard import GuardNewMemory, guarding
from triton_magics.worker.launches import Launches
from triton_magics.worker.load import Loaded, at_line
from triton_magics.worker.pretend import pretending

LEFT_STREAM = (
    "the call left torch on another stream: put the work into `with torch.cuda.stream(stream):`, "
    "and let the stream that was current wait for it"
)


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
    """One guarded call of the version.

    Attributes:
        value: what it returned.
        outputs: that as a tuple, then the inputs that the op says it changes.
        late: what went on after it returned.
        bounds: the first access outside a tensor; only the interpreter sees one.
    """

    value: Any
    outputs: tuple[Any, ...]
    launches: Launches
    memory: GuardNewMemory
    late: str | None
    bounds: Bounds

    def outside(self, subject: Subject) -> KernelError | None:
        """Which line reads or writes outside its tensor, where an interpreter saw it."""
        found = self.bounds.first
        if found is None:
            return None
        return at_line("OutOfBounds", found.message, found.line, subject.version.ref)


@dataclass(frozen=True)
class Before:
    """The threads before a call, and torch's current stream; None in the interpreter."""

    threads: frozenset[threading.Thread]
    stream: Any

    @classmethod
    def a_call(cls, subject: Subject) -> Before:
        """As it is now."""
        stream = None if subject.interpreted else torch.cuda.current_stream()
        return cls(frozenset(threading.enumerate()), stream)

    def left_its_stream(self) -> bool:
        """Whether the call left another current stream behind; it is now as it was."""
        if self.stream is None or torch.cuda.current_stream() == self.stream:
            return False
        torch.cuda.set_stream(self.stream)
        return True


def guarded_call(subject: Subject, inputs: Inputs, launches: Launches) -> Call:
    """The version's output, with new memory guarded and poisoned, and what went on after it."""
    before = Before.a_call(subject)
    path = subject.version.ref.path
    with (
        torch.no_grad(),
        guarding() as memory,
        checking_bounds(path, lambda: (*inputs.guards, *memory.guarded)) as bounds,
        pretending(subject.device),
    ):
        value = subject.version.call(*inputs.given)
    launches.torch_ops += memory.torch_ops
    outputs = oracle.all_outputs(subject.op, value, inputs.given)
    late = _late_work(subject, outputs, before)
    return Call(value, outputs, launches, memory, late, bounds)


def another_call(subject: Subject, given: tuple[Any, ...], call: Call) -> Call:
    """The version's output once more, without guards, and what went on after it.

    What guards saw is that of `call`.
    """
    before = Before.a_call(subject)
    value = plain(subject, given)
    outputs = oracle.all_outputs(subject.op, value, given)
    late = _late_work(subject, outputs, before)
    return dataclasses.replace(call, value=value, outputs=outputs, late=late)


def _late_work(subject: Subject, outputs: tuple[Any, ...], before: Before) -> str | None:
    """Whether outputs still changed after the current stream was done, or what else is new."""
    changed = not subject.interpreted and _changed_late(outputs)
    left = [t.name for t in threading.enumerate() if t not in before.threads]
    if left:
        return f"the call left a thread running: {left[0]}"
    if before.left_its_stream():
        return LEFT_STREAM
    if changed:
        return "the output still changed after its stream was done: work was left on another stream"
    return None


def _changed_late(outputs: tuple[Any, ...]) -> bool:
    tensors = [t for t in outputs if type(t) is torch.Tensor]
    torch.cuda.current_stream().synchronize()
    snapshots = [t.clone() for t in tensors]
    torch.cuda.synchronize()
    return not all(same_bits(t, s) for t, s in zip(tensors, snapshots, strict=True))


def plain(subject: Subject, given: tuple[Any, ...]) -> Any:
    """A call without guards."""
    with torch.no_grad(), pretending(subject.device):
        return subject.version.call(*given)
