"""The jobs under way, for whoever wants to see how far they are."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from triton_magics.engine.protocol import Progress

Watcher = Callable[[tuple["Work", ...]], None]


@dataclass(frozen=True)
class Work:
    """A job under way.

    Attributes:
        label: `validate softmax v2_tiling`.
        stage: what it does just now; empty before its first step.
        done, total: how many steps of it are done, of how many; None where that is not known.
        since: when it was asked for, by `time.monotonic()`, seconds.
    """

    label: str
    stage: str = ""
    done: int | None = None
    total: int | None = None
    since: float = field(default_factory=time.monotonic)


class Listeners(threading.local):
    """Who is told of the jobs of a thread: one that runs beside others hears of its own alone.

    Attributes:
        on_progress: told every step.
        on_output: told what a kernel prints.
        doing: the newest job, `validate softmax v2_tiling`; empty before the first.
    """

    doing: str = ""
    on_progress: Callable[[Progress], None] | None = None
    on_output: Callable[[str], None] | None = None


class Works:
    """The jobs under way, in the order in which they were asked for; safe in any thread.

    Attributes:
        watchers: each is told all of them whenever one begins, goes on or ends.
    """

    def __init__(self) -> None:
        self.watchers: list[Watcher] = []
        self._lock = threading.Lock()
        self._works: dict[object, Work] = {}

    @property
    def all(self) -> tuple[Work, ...]:
        """The jobs under way: the first runs, the others wait for it."""
        with self._lock:
            return tuple(self._works.values())

    @contextmanager
    def begun(
        self, label: str, hear: Callable[[Progress], None] | None
    ) -> Iterator[Callable[[Progress], None]]:
        """The time of a job; gives the listener of its steps, which `hear` is told too."""
        key, work = object(), Work(label)

        def step(progress: Progress) -> None:
            steps = (progress.done, progress.total) if progress.total else (None, None)
            self._put(key, replace(work, stage=progress.stage, done=steps[0], total=steps[1]))
            if hear:
                hear(progress)

        self._put(key, work)
        try:
            yield step
        finally:
            self._put(key, None)

    def _put(self, key: object, work: Work | None) -> None:
        with self._lock:
            if work is None:
                del self._works[key]
            else:
                self._works[key] = work
        for watcher in tuple(self.watchers):
            watcher(self.all)
