"""The workers of an engine: which is warm, which has run whose code, which must go."""

from __future__ import annotations

import os
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain
from typing import Literal

from triton_magics.engine.environment import (
    allowed,
    child_environment,
    new_home,
    working_folder,
)
from triton_magics.engine.nanny import WORKER_DATA_FD
from triton_magics.engine.nanny.processes import children_of, tree
from triton_magics.engine.nursery import KILL_S, Nursery, Zygote
from triton_magics.engine.process import Worker
from triton_magics.engine.protocol import Mode
from triton_magics.model import WorkerState

FD = ("--fd", str(WORKER_DATA_FD))
INTERPRET = "TRITON_INTERPRET"
# A zygote that dies more often than this (a library that can't be forked) is not tried again.
ZYGOTES = 8
ASK_S = 0.2  # to be told where a job is that has taken too long


class Crew:
    """At most one current worker per mode and some on standby, all under one nanny.

    That starts when it is needed. Not thread-safe, `hang_up` apart.
    """

    def __init__(
        self,
        command: Callable[[Mode], list[str]],
        memory_bytes: Callable[[], int],
        *,
        zygote: list[str] | None = None,
        standbys: Callable[[Mode], int] = lambda mode: 1,
    ) -> None:
        """Starts nothing yet.

        Args:
            command: argv of a worker; `--fd N` is added.
            memory_bytes: what a worker may take, asked for each.
            zygote: argv of a process that forks workers; None: each is started by its own command.
            standbys: how many of a mode should be warm.
        """
        self._command = command
        self._memory_bytes = memory_bytes
        self._zygote_argv = zygote
        self._wanted = standbys
        self._nursery: Nursery | None = None
        self._standby: dict[Mode, list[Worker]] = {}
        self._zygotes_left = ZYGOTES
        self._current: dict[Mode, Worker] = {}
        self._leaving: list[Worker] = []
        self._proven: set[Mode] = set()

    # ------------------------------------------------------------------------------- ask

    @property
    def up(self) -> bool:
        """Whether there is a nanny that answers."""
        return self._nursery is not None and not self._nursery.lost

    @property
    def pids(self) -> tuple[int, ...]:
        """The nanny's process and those that it has started, as far as they are known."""
        if self._nursery is None or not self.up:
            return ()
        return (self._nursery.pid, *(pid for pid in self._nursery.pids if pid is not None))

    @property
    def everybody(self) -> set[int]:
        """Those processes and all that they have started: processes that stand by to compile."""
        return tree(set(self.pids))

    def standby_ready(self, mode: Mode) -> bool:
        """Whether a job of this mode would find a warm worker."""
        return self.n_ready(mode) > 0

    def n_ready(self, mode: Mode) -> int:
        """How many jobs of this mode, each after a fault of the last, would find a warm worker."""
        return sum(w.rehearsed and w.usable for w in self._standby.get(mode, ()))

    def standing_by(self, mode: Mode) -> int:
        """How many of this mode are warm or warming, the current one left out."""
        return sum(w.usable for w in self._standby.get(mode, ()))

    @property
    def members(self) -> tuple[WorkerState, ...]:
        """Who is there; safe to ask in any thread."""
        standby = [w for shelf in list(self._standby.values()) for w in list(shelf)]
        shelves: tuple[tuple[Literal["standby", "current"], list[Worker]], ...]
        shelves = ("standby", standby), ("current", list(self._current.values()))
        return tuple(
            WorkerState(role=role, mode=w.mode, ready=w.rehearsed, pid=w.pid)
            for role, workers in shelves
            for w in workers
            if w.usable
        )

    def serves(self, worker: Worker) -> bool:
        """Whether it may be given a job now: it has rehearsed or, while it does, another has.

        One that has not finds less loaded, and so its first job takes some 0.1 s longer; but where
        none ever has, nobody knows yet that anything can work here. Where it may not rehearse,
        because others time on the GPU, the job does not wait for it: it has its place among those.
        """
        if worker.rehearsed:
            self._proven.add(worker.mode)
        if worker.ready is None or worker.pid is None:  # said by it, and by the nanny
            return False
        known = worker.mode in self._proven or worker.ready.rehearsal == "put off"
        return known and worker.usable

    def stuck(self, mode: Mode) -> list[Worker]:
        """Those that were killed and are not gone: they hang in a driver or in the system."""
        workers = self._nursery.stuck if self._nursery else ()
        return [worker for worker in workers if worker.mode == mode]

    def leaves_nothing(self, worker: Worker) -> bool:
        """Whether nothing runs that the worker, or a job before it, has started."""
        if self._nursery is None or worker.pid is None:
            return False
        known = self._nursery.known
        strays = children_of(self._nursery.pid) - set(known)
        # One that is just being started is not known by its number yet.
        return not children_of(worker.pid) and len(strays) <= known.count(None)

    def turn(self, timeout_s: float, wake_fd: int | None = None) -> None:
        """Lets in whatever the workers have said, waiting for at most that many seconds."""
        if self._nursery is not None:
            self._nursery.turn(timeout_s, wake_fd)

    # ------------------------------------------------------------------------------ change

    def prepare(self, mode: Mode) -> None:
        """Sees to it that there are as many standbys as wanted, warm or warming.

        Raises:
            WorkerError: the nanny could not be started.
        """
        self._start()
        self.dismiss()
        self.turn(0)
        for worker in [w for w in self._standby.get(mode, ()) if not w.usable]:
            self.retire(worker)
        shelf = self._standby.setdefault(mode, [])
        while len(shelf) < self._wanted(mode):
            shelf.append(self._spawn(mode))

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
        shelf = self._standby[mode]
        worker = min(shelf, key=lambda w: (not self.serves(w), not w.rehearsed))
        shelf.remove(worker)
        return worker

    def leave(self, mode: Mode, key: str) -> None:
        """Has the current worker of a mode go if it has run another key's code."""
        current = self._current.get(mode)
        if current is not None and current.key != key:
            self._leaving.append(self._current.pop(mode))

    def dismiss(self, *, wait: bool = False) -> None:
        """Kills who has run another key's code.

        Not done in `take`, so that the job which follows need not wait for it: a GPU's context
        takes 0.08 s to go (H200).

        Args:
            wait: until all of them are gone.
        """
        if self._nursery is None:
            return
        while self._leaving:
            self._nursery.let_go(self._leaving.pop())
        if wait:
            self._nursery.wait_for_the_leaving()

    def whereabouts(self, worker: Worker) -> str:
        """Python's stack in a worker that goes on, innermost first; empty where it does not tell.

        It must go afterwards.
        """
        if self._nursery is None or worker.stack is None:
            return ""
        self._nursery.ask(worker)
        deadline, before, said = time.monotonic() + ASK_S, "", ""
        while worker.usable and not (said and said == before) and time.monotonic() < deadline:
            self.turn(ASK_S / 10)
            before, said = said, worker.stack or ""
        return said

    def put_back(self, worker: Worker) -> None:
        """Returns a worker that was taken and given nothing to do."""
        if worker.key:
            self._current[worker.mode] = worker
        else:
            self._standby.setdefault(worker.mode, []).insert(0, worker)

    def keep(self, worker: Worker, key: str) -> None:
        """Makes a worker that has run a key's code the current one."""
        worker.key = key
        worker.rest()
        self._current[worker.mode] = worker

    def retire(self, worker: Worker, within_s: float = KILL_S) -> bool:
        """Kills a worker and all that it started; whether nothing of it is left, that soon."""
        if worker in self._standby.get(worker.mode, ()):
            self._standby[worker.mode].remove(worker)
        if self._current.get(worker.mode) is worker:
            del self._current[worker.mode]
        return self._nursery is None or self._nursery.kill(worker, within_s)

    @contextmanager
    def hushed(self) -> Iterator[None]:
        """Holds the workers that are warming up: on a GPU a timing would hear them."""
        nursery, since = self._nursery, time.monotonic()
        assert nursery is not None
        standby = chain.from_iterable(self._standby.values())
        warming = [w for w in standby if w.usable and not w.rehearsed]
        held: list[Zygote | Worker] = [*nursery.zygotes.values(), *warming]
        for process in held:
            nursery.pause(process)
        try:
            yield
        finally:
            for process in held:
                nursery.resume(process)
            for worker in warming:
                worker.started_at += time.monotonic() - since

    def prune(self, modes: set[Mode]) -> None:
        """Kills whoever is neither standby nor current, or of a mode that is no longer wanted."""
        kept = [*chain(*self._standby.values()), *self._current.values()]
        for worker in [*self._nursery.workers.values()] if self._nursery else []:
            if worker not in kept or worker.mode not in modes:
                self.retire(worker)

    def hang_up(self) -> None:
        """Makes every process end, from whatever thread; a job that runs is interrupted."""
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
        zygote = self._zygote(mode)
        env = child_environment(mode, os.environ, scratch=self._nursery.scratch())
        return self._nursery.spawn(
            mode, [*self._command(mode), *FD], env, working_folder(),
            memory_bytes=self._memory_bytes(), zygote=zygote,
        )  # fmt: skip

    def _zygote(self, mode: Mode) -> Zygote | None:
        """One that has the environment that a worker should have; a new one if need be."""
        assert self._nursery is not None
        if self._zygote_argv is None:
            return None
        env = child_environment(mode, os.environ)
        for zygote in [*self._nursery.zygotes.values()]:
            if zygote.env == env:
                return zygote
            if zygote.env.get(INTERPRET) == env.get(INTERPRET):  # the user has changed a variable
                self._nursery.close_zygote(zygote)
        if not self._zygotes_left:
            return None
        self._zygotes_left -= 1
        self._proven.clear()
        return self._nursery.open_zygote([*self._zygote_argv, *FD], env)

    def start_over(self) -> None:
        """Forgets the zygotes: the next worker is forked from a new one."""
        if self._nursery is not None:
            for zygote in [*self._nursery.zygotes.values()]:
                self._nursery.close_zygote(zygote)


__all__ = ["Crew"]
