"""Fields that every result of a job has, and the rules that hold for all of them."""

from __future__ import annotations

from typing import Self

from pydantic import model_validator

from triton_magics.model.base import Status, Value
from triton_magics.model.environment import Environment

RACE = "Race"  # kind of an error: two programs of a launch access one element


class KernelError(Value):
    """Error in a version's own code, and its place.

    `line` and `column` are 1-based in the version's source; `cell_line` and `file_line` say the
    same place as an editor shows it. `advice` is the line of code to write instead of `code`.
    """

    kind: str
    message: str
    line: int | None = None
    column: int | None = None
    cell_line: int | None = None
    file: str | None = None
    file_line: int | None = None
    code: str | None = None
    hint: str | None = None
    advice: str | None = None
    traceback: str = ""


class CodeLine(Value):
    """A line of a version, as its file and the notebook's cell count it, with its code."""

    file_line: int
    cell_line: int
    code: str


class Result(Value):
    """Ending of a job.

    Attributes:
        kind: of the result, as in JSON.
        status: how it ended.
        error: in the version's own code; None where nothing is wrong with it.
        message: one sentence where the status alone does not say enough.
        output: text that the process printed.
        environment: where it ran; None where the process was lost before it reported that.
        lost: the reason, where the machine that ran it was lost; else None.
    """

    kind: str
    status: Status
    error: KernelError | None = None
    message: str | None = None
    output: str = ""
    duration_s: float | None = None
    environment: Environment | None = None
    lost: str | None = None

    @property
    def passed(self) -> bool:
        """True if the job was done and nothing speaks against the version."""
        return self.status is Status.PASSED

    @model_validator(mode="after")
    def _check_error(self) -> Self:
        if self.passed and self.error is not None:
            raise ValueError(f"{self.kind}: it passed and has an error")
        if self.status is Status.COMPILE_ERROR and self.error is None:
            raise ValueError(f"{self.kind}: a compile error has its error")
        return self


class VersionResult(Result):
    """Ending of a job on one attempt at a version."""

    op: str
    version: str
    attempt: int
    sha256: str
