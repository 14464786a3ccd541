"""Answers to jobs: the values of the model, and those that only the session reads."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from triton_magics.model import (
    BackwardFacts,
    Benchmark,
    Compilation,
    KernelError,
    Plan,
    Profile,
    Replay,
    RunResult,
    SelfTest,
    Sweep,
    Validation,
    Value,
)


class TensorForm(Value):
    """Shape and dtype of an argument or an output; a scalar has a value and no shape."""

    name: str
    dtype: str
    shape: tuple[int, ...] | None = None
    value: bool | int | float | None = None


class SizeForms(Value):
    """Inputs and outputs of an op at one of its sizes."""

    size: str
    shape: tuple[int, ...]
    inputs: tuple[TensorForm, ...]
    outputs: tuple[TensorForm, ...]


class OpForms(Value):
    """Inputs and outputs of an op at its sizes, the smallest first."""

    kind: Literal["forms"] = "forms"
    sizes: tuple[SizeForms, ...]


class OpDescription(Value):
    """The declarations of an op's file, once its reference has run on a small input."""

    kind: Literal["description"] = "description"
    name: str
    sizes: dict[str, tuple[int, ...]]
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[str, ...]
    signature: str
    doc: str
    outputs: tuple[str, ...]
    flops: int | None = None
    backward: BackwardFacts | None = None


class Findings(Value):
    """Facts about a problem that a worker found by calling its reference.

    Attributes:
        draft: position of the first draft that works.
        sizes: shapes to time, by name; those of the problem, or with a smaller batch.
        shapes: shapes to check, cheap ones first.
        skip_values: kinds of input values at which the reference is not finite, or takes long.
        input_names: of the reference.
        mutates: positions of the inputs that the reference changes.
        dtype: the least precise floating dtype of its inputs and outputs; None: of the draft.
        has_oracle: the reference works in float64.
        notes: restrictions, for the op's text.
    """

    kind: Literal["findings"] = "findings"
    draft: int = 0
    sizes: dict[str, tuple[int, ...]]
    shapes: tuple[tuple[int, ...], ...]
    skip_values: tuple[str, ...] = ()
    input_names: tuple[str, ...] = ()
    mutates: tuple[int, ...] = ()
    dtype: str | None = None
    has_oracle: bool = True
    notes: tuple[str, ...] = ()


class WorkerFault(Value):
    """A job that failed for a reason other than a call of the version.

    Attributes:
        user: the user can repair it (an own op whose reference raises, an unknown size).
        message: the reason.
        traceback: where it happened.
        version_error: it happened in the process in which the version ran, and the version may be
            the cause: a signal handler that raises, a changed module. It is the job's verdict.
    """

    kind: Literal["fault"] = "fault"
    user: bool
    message: str
    traceback: str = ""
    version_error: KernelError | None = None


Answer = Annotated[
    Validation
    | Replay
    | Plan
    | Benchmark
    | Sweep
    | SelfTest
    | RunResult
    | Profile
    | Compilation
    | OpDescription
    | Findings
    | OpForms
    | WorkerFault,
    Field(discriminator="kind"),
]


__all__ = [
    "Answer",
    "Findings",
    "OpDescription",
    "OpForms",
    "SizeForms",
    "TensorForm",
    "WorkerFault",
]
