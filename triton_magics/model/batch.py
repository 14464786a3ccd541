"""The results of many verbs that ran at the same time."""

from __future__ import annotations

from typing import Literal

from triton_magics.model.base import Status, Value


class BatchEntry(Value):
    """One line of a batch: its steps ran in order, up to the first that did not succeed.

    Attributes:
        line: its number in the file, from 1.
        key: hash of its steps, by which a later run finds it again.
        label: the last step that ran, `bench softmax`.
        status: of that step's verdict; None where it has none.
        error: why a step was refused, or could not run; empty otherwise.
        reason: of a verdict that is not `passed`: its first line.
        has_run: False where a step could not run, through no fault of its own (a lost GPU, server
            or scheduler); a further call runs it.
        duration_s: seconds, with the time that its jobs waited.
    """

    line: int
    key: str
    label: str
    status: Status | None = None
    error: str = ""
    reason: str = ""
    has_run: bool = True
    duration_s: float = 0.0

    @property
    def ok(self) -> bool:
        """True where every step succeeded."""
        return not self.error and self.status in (None, Status.PASSED)


class Batch(Value):
    """All lines of a batch, in their order.

    Attributes:
        file: name of the file of steps.
        results: name of the file with the values.
        resumed: number of entries that an earlier run had finished.
        total: number of lines in the file.
        message: why it ended before the last line; empty after an interrupt.
    """

    kind: Literal["batch"] = "batch"
    file: str
    results: str
    entries: tuple[BatchEntry, ...]
    resumed: int = 0
    total: int = 0
    message: str = ""
    duration_s: float = 0.0

    @property
    def status(self) -> Status:
        """`passed` where every line succeeded; `unavailable` where some could not run."""
        if not all(entry.has_run for entry in self.entries):
            return Status.UNAVAILABLE
        if len(self.entries) < self.total:
            return Status.INTERRUPTED
        return Status.PASSED if all(entry.ok for entry in self.entries) else Status.FAILED


__all__ = ["Batch", "BatchEntry"]
