"""The workers of an engine: which is warm, which has run whose code, which must go."""

from __future__ import annotations

import os
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from triton_magics.engine.environment import (
    allowed,
    child_environment,
    new_home,
    working_folder,
)
from triton_magics.engine.nanny import WORKER_DATA_FD, children_of
from triton_magics.engine.nursery import KILL_S, Nursery
from triton_magics.engine.process import Worker
from triton_magics.engine.protocol import Mode


class Crew:
    """At most one current and one standby worker per mode, under one nanny that starts when needed.

    Not thread-safe, `hang_up` apart.
    """

    def __init__(
        self, command: Callable[[Mode], list[str]], memory_bytes: Callable[[], int]
    ) -> None:
        """Starts nothing yet.

        Args:
            command: argv of a worker; `--fd N` is added.
            memory_bytes: what a worker may take, asked for each.
        """
        self._command = command
        self._memory_bytes = memory_bytes
        self._nursery: Nursery | None = None
        self._standby: dict[Mode, Worker] = {}
        self._current: dict[Mode, Worker] = {}
        self._leaving: list[Worker] = []

    # ------------------------------------------------------------------------------- ask

    @property
    def up(self) -> bool:
        """Whether there is a nanny that answers."""
        return self._nursery is not None and not self._nursery.lost

    @property
    def pids(self) -> tuple[int, ...]:
        """The nanny's process and those of its workers, as far as they are known."""
        if self._nursery is None or not self.up:
            return ()
        workers = self._nursery.workers.values()
        return (self._nursery.pid, *(w.pid for w in workers if w.pid is not None))

    def standby_ready(self, mode: Mode) -> bool:
        """Whether a job of this mode would find a warm worker."""
        standby = self._standby.get(mode)
        return standby is not None and standby.ready is not None and standby.usable

    def leaves_nothing(self, worker: Worker) -> bool:
        """Whether nothing runs that the worker, or a job before it, has started."""
        if self._nursery is None or worker.pid is None:
            return False
        workers = [w.pid for w in self._nursery.workers.values()]
        strays = children_of(self._nursery.pid) - set(workers)
        # One that is just being started is not known by its number yet.
        return not children_of(worker.pid) and len(strays) <= workers.count(None)

    def turn(self, timeout_s: float, wake_fd: int | None = None) -> None:
        """Lets in whatever the workers have said, waiting for at most that many seconds."""
        if self._nursery is not None:
            self._nursery.turn(timeout_s, wake_fd)

    # ------------------------------------------------------------------------------ change

    def prepare(self, mode: Mode) -> None:
        """Sees to it that there is a standby, warm or warming.

        Raises:
            WorkerError: the nanny could not be started.
        """
        self._start()
        self.dismiss()
        self.turn(0)
        standby = self._standby.get(mode)
        if standby is not None and not standby.usable:
            self.retire(standby)
        if mode not in self._standby:
            self._standby[mode] = self._spawn(mode)

    def take(self, mode: Mode, key: str) -> Worker:
        """The worker that serves this key: the current one if the key is its own, or a new one.

        It is out of the crew until it is kept: whatever goes wrong meanwhile, `prune` finds it.

        Raises:
            WorkerError: the nanny could not be started.
        """
        self._start()
        self.turn(0)
        current = self._current.pop(mode, None)
        if current is not None:
            if key and current.key == key and current.usable:
                return current
            self._leaving.append(current)
        if not self.standby_ready(mode):
            self.prepare(mode)
        return self._standby.pop(mode)

    def dismiss(self) -> None:
        """Kills who has run another key's code. A GPU's context takes 0.08 s to go (H200).

        Not done in `take`, so that the job which follows need not wait for it.
        """
        while self._leaving:
            self.retire(self._leaving.pop())

    def put_back(self, worker: Worker) -> None:
        """Returns a worker that was taken and given nothing to do."""
        shelf = self._current if worker.key else self._standby
        shelf[worker.mode] = worker

    def keep(self, worker: Worker, key: str) -> None:
        """Makes a worker that has run a key's code the current one."""
        worker.key = key
        worker.rest()
        self._current[worker.mode] = worker

    def retire(self, worker: Worker, within_s: float = KILL_S) -> bool:
        """Kills a worker and all that it started; whether nothing of it is left, that soon."""
        for shelf in (self._standby, self._current):
            if shelf.get(worker.mode) is worker:
                del shelf[worker.mode]
        return self._nursery is None or self._nursery.kill(worker, within_s)

    @contextmanager
    def hushed(self) -> Iterator[None]:
        """Holds the workers that are warming up: on a GPU a timing would hear them."""
        nursery, since = self._nursery, time.monotonic()
        assert nursery is not None
        warming = [w for w in nursery.workers.values() if w.ready is None and w.usable]
        for worker in warming:
            nursery.pause(worker)
        try:
            yield
        finally:
            for worker in warming:
                nursery.resume(worker)
                worker.started_at += time.monotonic() - since

    def prune(self, modes: set[Mode]) -> None:
        """Kills whoever is neither standby nor current, or of a mode that is no longer wanted."""
        kept = [*self._standby.values(), *self._current.values()]
        for worker in [*self._nursery.workers.values()] if self._nursery else []:
            if worker not in kept or worker.mode not in modes:
                self.retire(worker)

    def hang_up(self) -> None:
        """Makes every process end, from whatever thread; a job that runs sees its worker die."""
        if self._nursery is not None:
            self._nursery.hang_up()

    def close(self) -> None:
        """Ends every process and waits for that; the next `take` starts anew."""
        self._standby.clear()
        self._current.clear()
        self._leaving.clear()
        if self._nursery is not None:
            self._finalizer()
            self._nursery = None

    # ------------------------------------------------------------------------------- start

    def _start(self) -> None:
        if self._nursery is not None and (self._nursery.lost or self._nursery.foreign):
            self.close()
        if self._nursery is None:
            self._nursery = nursery = Nursery(new_home(), allowed(os.environ))
            # Also at the interpreter's exit, and when the engine is simply dropped.
            self._finalizer = weakref.finalize(self, nursery.close)

    def _spawn(self, mode: Mode) -> Worker:
        assert self._nursery is not None
        env = child_environment(mode, self._nursery.scratch(), os.environ)
        argv = [*self._command(mode), "--fd", str(WORKER_DATA_FD)]
        return self._nursery.spawn(
            mode, argv, env, working_folder(), memory_bytes=self._memory_bytes()
        )


__all__ = ["Crew"]
