"""Every deliberate exception of the project.

TritonMagicsError
├─ UserError            fixable by the caller; one line that says what to do
│   ├─ UnknownOp
│   ├─ UnknownVersion
│   ├─ UnknownJob       an id that no job of a server has, or that of another client
│   ├─ UnknownName      any other name that is not in its list (size, dtype, pattern)
│   ├─ BadName          a name that could not be a file, a module or a version
│   ├─ BadValue         a number or a shape out of its range
│   ├─ BadContract      an IO contract with faults; lists all of them
│   ├─ BadKernelSource  a cell that is not a module with an entry point; knows its line
│   │   └─ AmbiguousEntry
│   ├─ IllegalStep      the workflow does not allow it now; lists what it allows
│   ├─ QueueFull        too many jobs wait already; knows when to ask again
│   └─ Unavailable      a part that is not installed or not there (triton, ipywidgets, a GPU)
├─ KernelFailure        a failed verdict, raised so that Run All stops; has the value
├─ WorkerError          our own process failed; says nothing about the kernel
│   ├─ GpuLost          the GPU does not come back; nothing runs on it until it does
│   └─ ServerLost       the server of a remote engine was lost with a job on it; has the value
├─ WorkspaceError       the folder or the store can't be read or written
├─ KnowledgeError       the shipped knowledge is missing or broken
└─ ExportError          a log could not be made

Interrupted, a KeyboardInterrupt, has what was known of a job when it was stopped.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import Any

from triton_magics.next_step import NextStep

_LONG_WORD = re.compile(r"(\S{80})\S{320,}")  # a path is shorter


class TritonMagicsError(Exception):
    """Base of every error that this package raises on purpose."""


class UserError(TritonMagicsError):
    """Something the caller can fix; the message is one line, without very long words.

    Attributes:
        next_step: the verb that fixes it, where there is one; a front end adds it in its own form.
    """

    def __init__(self, message: str, *, next_step: NextStep | None = None) -> None:
        super().__init__(_LONG_WORD.sub(r"\1…", message))
        self.next_step = next_step


class UnknownOp(UserError):
    """An op that neither ships nor was defined here."""


class UnknownVersion(UserError):
    """A version that was not written yet."""


class UnknownJob(UserError):
    """A job that the server does not have, or that another client submitted."""


class QueueFull(UserError):
    """Too many jobs wait.

    Attributes:
        retry_after_s: when to ask again, seconds.
    """

    def __init__(self, message: str, *, retry_after_s: int) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class UnknownName(UserError):
    """A name that is not in the list it must come from."""


class BadName(UserError):
    """A name that can't be a module, a version or a folder."""


class BadValue(UserError):
    """A number, a shape or a flag out of its range."""


class BadContract(UserError):
    """An IO contract with faults.

    Attributes:
        faults: each with its field, message and what is allowed.
    """

    def __init__(self, message: str, *, faults: tuple[Any, ...] = ()) -> None:
        super().__init__(message)
        self.faults = faults


class BadKernelSource(UserError):
    """A cell that is no module with an entry point.

    Attributes:
        line: 1-based line in the source, where there is one.
        code: that line's text.
    """

    def __init__(
        self,
        message: str,
        *,
        line: int | None = None,
        code: str | None = None,
        next_step: NextStep | None = None,
    ) -> None:
        super().__init__(message, next_step=next_step)
        self.line = line
        self.code = code


class AmbiguousEntry(BadKernelSource):
    """Several functions could be the entry point."""


class IllegalStep(UserError):
    """The workflow does not allow this step now."""


class Unavailable(UserError):
    """A part that is missing here; the message says what to install."""


class KernelFailure(TritonMagicsError):
    """A verdict that is not `passed`, raised so that a run of the whole notebook stops.

    Attributes:
        value: the `Validation`, `Benchmark`, `RunResult` or `Written` that says why.
    """

    def __init__(self, message: str, value: object) -> None:
        super().__init__(message)
        self.value = value


class WorkerError(TritonMagicsError):
    """Our own process failed; the kernel is not to blame."""


class GpuLost(WorkerError):
    """The GPU does not come back: a process hangs in its driver, or it asks to be reset."""


class ServerLost(WorkerError):
    """The server of a remote engine ended, or was out of reach too long, with a job on it.

    Attributes:
        value: what was known of the job by then; it is recorded. None where nothing was.
    """

    def __init__(self, problem: str, value: object = None) -> None:
        super().__init__(
            f"{problem}. The job has ended there, or ends there within 10 minutes; the results "
            "until then are kept here. Run it again once the server answers."
        )
        self.value = value


class WorkspaceError(TritonMagicsError):
    """The workspace can't be read or written."""


class KnowledgeError(TritonMagicsError):
    """The shipped knowledge is missing or broken."""


class ExportError(TritonMagicsError):
    """A log could not be made."""


class Interrupted(KeyboardInterrupt):
    """A job was stopped, by Ctrl-C or by `Lab.cancel`.

    Attributes:
        value: what was known of it by then; it is recorded.
    """

    def __init__(self, value: object) -> None:
        super().__init__("stopped; what was known by then is kept")
        self.value = value


def did_you_mean(name: str, candidates: Iterable[str]) -> str:
    """Return a sentence with the nearest candidate, or an empty string.

    Args:
        name: the unknown name.
        candidates: the names that exist.
    """
    near = difflib.get_close_matches(name, sorted(candidates), n=1, cutoff=0.6)
    return f" Did you mean {near[0]!r}?" if near else ""
