"""The calls of the Lab that a notebook makes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from triton_magics.errors import Interrupted

if TYPE_CHECKING:
    from triton_magics.engine.protocol import Progress
    from triton_magics.lab import Lab


class Step(NamedTuple):
    """How far a call is.

    Attributes:
        doing: the job that is on, of the several that a call may come to.
        stage: what it does just now.
        done, total: how many steps of it are done, of how many; None where that is not known.
    """

    doing: str
    stage: str
    done: int | None = None
    total: int | None = None


def call(
    lab: Lab,
    verb: Callable[[Lab], Any],
    *,
    hear: Callable[[Step], None] | None = None,
    say: Callable[[str], None] | None = None,
) -> Any:
    """What the Lab returns; of an interrupted job what is known of it.

    Args:
        lab: whose.
        verb: one of its verbs, with arguments.
        hear: told each step.
        say: told what a kernel prints, as it prints it.

    Raises:
        KeyboardInterrupt: interrupted where nothing is known.
        TritonMagicsError: as the Lab raises it.
    """

    def step(progress: Progress) -> None:
        if hear:
            hear(Step(lab.doing, progress.stage, progress.done, progress.total))

    listeners = (lab.on_progress, lab.on_output)
    lab.on_progress, lab.on_output = step, say
    try:
        return verb(lab)
    except Interrupted as interrupt:
        return interrupt.value
    finally:
        lab.on_progress, lab.on_output = listeners


def in_words(stage: str, done: int | None, total: int | None) -> str:
    """`257x1023 float16 · 12 of 46`."""
    return " · ".join(part for part in (stage, f"{done} of {total}" if total else "") if part)
