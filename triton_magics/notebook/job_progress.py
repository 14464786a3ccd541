"""Follow the progress and the prints of the jobs of a call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from triton_magics.errors import Interrupted

if TYPE_CHECKING:
    from triton_magics.execution.protocol import Progress
    from triton_magics.lab import Lab


class Step(NamedTuple):
    """Progress of a call.

    Attributes:
        job: name of the running job; a call may consist of several.
        stage: present stage of the job.
        done, total: completed steps and all steps; None if unknown.
    """

    job: str
    stage: str
    done: int | None = None
    total: int | None = None


@contextmanager
def listen_to_jobs(
    lab: Lab,
    *,
    on_progress: Callable[[Step], None] | None = None,
    on_output: Callable[[str], None] | None = None,
) -> Iterator[None]:
    """Pass on the progress and prints of the jobs of this thread; restore the listeners after.

    Args:
        lab: runs the jobs.
        on_progress: called with each step.
        on_output: called with the text that a kernel prints.
    """

    def step(progress: Progress) -> None:
        if on_progress:
            on_progress(Step(lab.newest_job, progress.stage, progress.done, progress.total))

    listeners = (lab.on_progress, lab.on_output)
    lab.on_progress, lab.on_output = step, on_output
    try:
        yield
    finally:
        lab.on_progress, lab.on_output = listeners


def call(
    lab: Lab,
    verb: Callable[[Lab], Any],
    *,
    on_progress: Callable[[Step], None] | None = None,
    on_output: Callable[[str], None] | None = None,
) -> Any:
    """Return the result of a call, or the partial result of an interrupted job.

    Raises:
        KeyboardInterrupt: interrupted before there was a partial result.
        TritonMagicsError: the error of the Lab.
    """
    try:
        with listen_to_jobs(lab, on_progress=on_progress, on_output=on_output):
            return verb(lab)
    except Interrupted as interrupt:
        return interrupt.value


def progress_text(stage: str, done: int | None, total: int | None) -> str:
    """Return `257x1023 float16 · 12 of 46`."""
    return " · ".join(part for part in (stage, f"{done} of {total}" if total else "") if part)
