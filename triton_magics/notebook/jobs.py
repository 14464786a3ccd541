"""The calls of the Lab that a notebook makes, and everyone who watches them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from triton_magics.engine.protocol import Progress
    from triton_magics.lab import Lab

Watcher = Callable[["str | None"], None]


class Jobs:
    """Makes calls; panels see how far each is.

    Attributes:
        watchers: told each step of a job in words, an empty one as it begins, `None` at its end.
    """

    def __init__(self) -> None:
        self.watchers: list[Watcher] = []

    def call(
        self,
        lab: Lab,
        call: Callable[[Lab], Any],
        *,
        hear: Callable[[str], None] | None = None,
        say: Callable[[str], None] | None = None,
    ) -> Any:
        """What the Lab returns; of an interrupted job what is known of it.

        Args:
            lab: whose.
            call: one of its verbs, with arguments.
            hear: told each step, in words.
            say: told what a kernel prints, as it prints it.

        Raises:
            KeyboardInterrupt: interrupted where nothing is known.
            TritonMagicsError: as the Lab raises it.
        """

        def step(progress: Progress) -> None:
            words = _in_words(progress)
            if hear:
                hear(words)
            self._tell(words)

        before, listeners = lab.last, (lab.on_progress, lab.on_output)
        lab.on_progress, lab.on_output = step, say
        self._tell("")
        try:
            return call(lab)
        except KeyboardInterrupt:
            if lab.last is before or getattr(lab.last, "status", None) != "interrupted":
                raise
            return lab.last
        finally:
            lab.on_progress, lab.on_output = listeners
            self._tell(None)

    def _tell(self, words: str | None) -> None:
        for watcher in tuple(self.watchers):
            watcher(words)


def _in_words(progress: Progress) -> str:
    """`257x1023 float16 · 12 of 46`."""
    done = f" · {progress.done} of {progress.total}" if progress.total else ""
    return f"{progress.stage}{done}"
