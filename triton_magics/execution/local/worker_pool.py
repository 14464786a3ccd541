"""The workers of a device: standbys, the current one of each mode, and those to be killed."""

from __future__ import annotations

import os
import time
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from typing import Literal

from triton_magics import languages
from triton_magics.execution.job_requests import Mode
from triton_magics.execution.local.supervisor import WORKER_DATA_FD
from triton_magics.execution.local.supervisor.process_table import children_of, tree
from triton_magics.execution.local.supervisor_client import KILL_S, ForkServer, SupervisorClient
from triton_magics.execution.local.worker_environment import (
    allowed_variables,
    child_environment,
    new_home,
    working_folder,
)
from triton_magics.execution.local.worker_process import Worker
from triton_magics.execution.sandbox import Policy
from triton_magics.model import WorkerState

FD = ("--fd", str(WORKER_DATA_FD))
# A fork server that dies more often than this (a library that can't be forked) is not tried again.
MAX_FORK_SERVERS = 8
TOOLS: Mode = "tools"
STACK_DUMP_S = 0.2  # longest wait for the stacks of a job that timed out
STACK_POLL_S = 0.02


class WorkerPool:
    """At most one current worker per mode and some on standby, all under one supervisor.

    The supervisor starts when it is needed. Not thread-safe, except for `hang_up`.
    """

    def __init__(
        self,
        command: Callable[[Mode], list[str]],
        memory_bytes: Callable[[], int],
        *,
        fork_server: list[str] | None = None,
        standbys: Callable[[Mode], int] = lambda mode: 1,
        gpu: str | None = None,
        sandbox: Callable[[], Policy | None] = lambda: None,
        cores: Callable[[], Collection[int]] = tuple,
        core_share: Callable[[], int] = int,
    ) -> None:
        """Start nothing yet.

        Args:
            command: argv of a worker; `--fd N` is added.
            memory_bytes: returns the memory limit of a worker; called for each.
            fork_server: argv of a process that forks workers; None: each is started from argv.
            standbys: returns the number of warm workers to have of a mode.
            gpu: the only GPU that the workers see, by its UUID; None: those that the caller sees.
            sandbox: returns the policy of the workers; None: they have none.
            cores: returns the CPU cores that the workers run on; empty: all.
            core_share: returns how many of them a worker may keep busy; 0: all.
        """
        self._sandbox = sandbox
        self._command = command
        self._memory_bytes = memory_bytes
        self._fork_server_argv = fork_server
        self._n_standbys = standbys
        self._gpu = gpu
        self._cores = cores
        self._core_share = core_share
        self._supervisor: SupervisorClient | None = None
        self._standby: dict[Mode, list[Worker]] = {}
        self._fork_servers_left = MAX_FORK_SERVERS
        self._current: dict[Mode, Worker] = {}
        self._leaving: list[Worker] = []
        self._warmed_up: set[Mode] = set()

    # ----------------------------------------------------------------------------- state

    @property
    def is_up(self) -> bool:
        """True if there is a supervisor that responds."""
        return self._supervisor is not None and not self._supervisor.is_lost

    @property
    def pids(self) -> tuple[int, ...]:
        """The pids of the supervisor and of the processes that it has started."""
        if self._supervisor is None or not self.is_up:
            return ()
        return (self._supervisor.pid, *(pid for pid in self._supervisor.pids if pid is not None))

    @property
    def processes(self) -> set[int]:
        """Return those pids and all descendants, such as processes that compile."""
        return tree(set(self.pids))

    def standby_ready(self, mode: Mode) -> bool:
        """Return True if a warm worker of this mode waits for a job."""
        return self.n_ready(mode) > 0

    def has_available(self, mode: Mode) -> bool:
        """Return True if a standby of this mode may take a job; see `is_available`."""
        return any(map(self.is_available, self._standby.get(mode, ())))

    def n_ready(self, mode: Mode) -> int:
        """Return the number of warm standbys of this mode."""
        return sum(w.is_warm and w.is_usable for w in self._standby.get(mode, ()))

    def n_standbys(self, mode: Mode) -> int:
        """Return the number of warm or warming standbys of this mode."""
        return sum(w.is_usable for w in self._standby.get(mode, ()))

    @property
    def members(self) -> tuple[WorkerState, ...]:
        """The state of each worker; safe in any thread."""
        standby = [w for shelf in list(self._standby.values()) for w in list(shelf)]
        shelves: tuple[tuple[Literal["standby", "current"], list[Worker]], ...]
        shelves = ("standby", standby), ("current", list(self._current.values()))
        return tuple(
            WorkerState(role=role, mode=w.mode, ready=w.is_warm, pid=w.pid)
            for role, workers in shelves
            for w in workers
            if w.is_usable
        )

    def is_available(self, worker: Worker) -> bool:
        """Return whether a worker may take a job: it is warm, or another one's warm-up has passed.

        The first job of a cold worker takes about 0.1 s longer. Before the first warm-up passes, it
        is unknown whether jobs can run at all. A job does not wait for a warm-up that is postponed
        because of jobs on the GPU: the job queues for the GPU lock.
        """
        if worker.is_warm:
            self._warmed_up.add(worker.mode)
        if worker.ready is None or worker.pid is None:  # sent by the worker and by the supervisor
            return False
        can_run = worker.mode in self._warmed_up or worker.ready.warm_up == "postponed"
        return can_run and worker.is_usable

    def stuck(self, mode: Mode) -> list[Worker]:
        """Return killed workers that are not gone: they hang in a driver or in the system."""
        workers = self._supervisor.stuck if self._supervisor else ()
        return [worker for worker in workers if worker.mode == mode]

    def has_no_descendants(self, worker: Worker) -> bool:
        """Return True if no process runs that the worker, or an earlier job, has started.

        A worker of mode `tools` has ended those of its job; it may have started that of the next.
        """
        if self._supervisor is None or worker.pid is None:
            return False
        subject = worker.subject_pid
        pids = self._supervisor.all_pids
        strays = children_of(self._supervisor.pid) - set(pids)
        # The pid of a process that is just starting is still None.
        started = children_of(worker.pid) - {subject, *worker.helper_pids}
        started |= children_of(subject) if subject else set()
        if worker.mode == TOOLS:
            started.clear()
        return not started and len(strays) <= pids.count(None)

    def poll(self, timeout_s: float, wake_fd: int | None = None) -> None:
        """Read what the workers have sent; wait at most that many seconds for it."""
        if self._supervisor is not None:
            self._supervisor.poll(timeout_s, wake_fd)

    # ---------------------------------------------------------------------------- changes

    def prepare(self, mode: Mode) -> None:
        """Start standbys until there are as many as configured.

        Raises:
            WorkerError: the supervisor could not be started.
        """
        self._start()
        self.dismiss()
        self.poll(0)
        for worker in [w for w in self._standby.get(mode, ()) if not w.is_usable]:
            self.retire(worker)
        shelf = self._standby.setdefault(mode, [])
        while len(shelf) < self._n_standbys(mode):
            shelf.append(self._spawn(mode))

    def take(self, mode: Mode, key: str) -> Worker:
        """Take the worker for this key: the current one if it ran this key's code, else a standby.

        It is neither standby nor current until `keep`, so that `prune` kills it after an error.

        Raises:
            WorkerError: the supervisor could not be started.
        """
        self._start()
        self.poll(0)
        current = self._current.pop(mode, None)
        if current is not None:
            if key and current.key == key and current.is_usable:
                return current
            self._leaving.append(current)
        if not self.standby_ready(mode):
            self.prepare(mode)
        shelf = self._standby[mode]
        worker = min(shelf, key=lambda w: (not self.is_available(w), not w.is_warm))
        shelf.remove(worker)
        return worker

    def take_available(self, mode: Mode, *, leave: int, at_most: int) -> list[Worker]:
        """Take available standbys, as long as so many are left; see `take`."""
        shelf = self._standby.get(mode, [])
        available = [worker for worker in shelf if self.is_available(worker)]
        chosen = available[: max(0, min(at_most, len(available) - leave))]
        for worker in chosen:
            shelf.remove(worker)
        return chosen

    def leave(self, workers: Iterable[Worker]) -> None:
        """Let `dismiss` kill workers that were taken."""
        self._leaving += workers

    def take_unconfined(self, mode: Mode) -> Worker:
        """Return a worker outside the sandbox, for a job of ours whose tools can't work in it.

        It is the current one in mode `tools`, which itself calls no version, else a new one.

        Raises:
            WorkerError: the supervisor could not be started.
        """
        self._start()
        self.poll(0)
        if current := self._current.pop(mode, None) if mode == TOOLS else None:
            if current.is_usable:
                return current
            self._leaving.append(current)
        return self._spawn(mode, is_confined=False)

    def release(self, mode: Mode, key: str) -> None:
        """Let `dismiss` kill the current worker of a mode if it has run another key's code."""
        current = self._current.get(mode)
        if current is not None and current.key != key:
            self._leaving.append(self._current.pop(mode))

    def dismiss(self, *, wait: bool = False) -> None:
        """Kill the workers that have run another key's code.

        Separate from `take`, so that a job does not wait for it: the end of a GPU context takes
        0.08 s (H200).

        Args:
            wait: wait until all of them are gone.
        """
        if self._supervisor is None:
            return
        while self._leaving:
            self._supervisor.kill_without_waiting(self._leaving.pop())
        if wait:
            self._supervisor.wait_for_killed()

    def dump_stack(self, worker: Worker) -> str:
        """Return Python's stacks in a running worker, innermost first; empty without an answer.

        Kill the worker afterwards.
        """
        if self._supervisor is None or worker.stack is None:
            return ""
        self._supervisor.dump_stack(worker)
        deadline, before, stack = time.monotonic() + STACK_DUMP_S, "", ""
        while worker.is_usable and not (stack and stack == before) and time.monotonic() < deadline:
            self.poll(STACK_POLL_S)
            before, stack = stack, worker.stack or ""
        return stack

    def put_back(self, worker: Worker) -> None:
        """Return a worker that was taken and has run nothing."""
        if not worker.is_confined and worker.mode != TOOLS:
            self.retire(worker, 0.0)
        elif worker.key or worker.mode == TOOLS:
            self._current[worker.mode] = worker
        else:
            self._standby.setdefault(worker.mode, []).insert(0, worker)

    def keep(self, worker: Worker, key: str) -> None:
        """Make a worker that has run a key's code the current one."""
        worker.key = key
        worker.set_idle()
        self._current[worker.mode] = worker

    def retire(self, worker: Worker, within_s: float = KILL_S) -> bool:
        """Kill a worker and its descendants; return False if one is left by the deadline."""
        if worker in self._standby.get(worker.mode, ()):
            self._standby[worker.mode].remove(worker)
        if self._current.get(worker.mode) is worker:
            del self._current[worker.mode]
        return self._supervisor is None or self._supervisor.kill(worker, within_s)

    @contextmanager
    def pause_warmups(self) -> Iterator[None]:
        """Stop the workers that warm up: on a GPU they would disturb a timing."""
        supervisor, since = self._supervisor, time.monotonic()
        assert supervisor is not None
        standby = chain.from_iterable(self._standby.values())
        warming = [w for w in standby if w.is_usable and not w.is_warm]
        paused: list[ForkServer | Worker] = [*supervisor.fork_servers.values(), *warming]
        for process in paused:
            supervisor.pause(process)
        try:
            yield
        finally:
            for process in paused:
                supervisor.resume(process)
            for worker in warming:
                worker.started_at += time.monotonic() - since

    def prune(self, modes: set[Mode]) -> None:
        """Kill each worker that is neither standby nor current, or of another mode."""
        members = [*chain(*self._standby.values()), *self._current.values()]
        for worker in [*self._supervisor.workers.values()] if self._supervisor else []:
            if worker not in members or worker.mode not in modes:
                self.retire(worker)

    def hang_up(self) -> None:
        """End every process, in any thread; a running job is interrupted."""
        if self._supervisor is not None:
            self._supervisor.hang_up()

    def close(self) -> None:
        """End every process and wait for it; the next `take` starts new ones."""
        self._standby.clear()
        self._current.clear()
        self._leaving.clear()
        if self._supervisor is not None:
            self._finalizer()
            self._supervisor = None

    # ----------------------------------------------------------------------------- start

    def _start(self) -> None:
        if self._supervisor is not None:
            self._supervisor.ping()
            self._supervisor.poll(0)
            if self._supervisor.is_lost:  # its fork servers did not die by themselves
                self._fork_servers_left += len(self._supervisor.fork_servers)
            if self._supervisor.is_lost or self._supervisor.is_foreign:
                self.close()
        if self._supervisor is None:
            self._supervisor = supervisor = SupervisorClient(
                new_home(), allowed_variables(os.environ)
            )
            # Also at the interpreter's exit, and when the executor is garbage.
            self._finalizer = weakref.finalize(self, supervisor.close)

    def _spawn(self, mode: Mode, *, is_confined: bool = True) -> Worker:
        assert self._supervisor is not None
        fork_server = self._fork_server(mode)
        scratch, sandbox = self._supervisor.scratch(), self._sandbox() if is_confined else None
        env = child_environment(
            mode,
            os.environ,
            scratch=scratch,
            gpu=self._gpu,
            sandbox=sandbox,
            cores=self._cores(),
            core_share=self._core_share(),
        )
        worker = self._supervisor.spawn(
            mode, [*self._command(mode), *FD], env, working_folder(),
            memory_bytes=self._memory_bytes(), fork_server=fork_server, is_confined=is_confined,
        )  # fmt: skip
        worker.is_confined = is_confined
        return worker

    def _fork_server(self, mode: Mode) -> ForkServer | None:
        """Return the fork server with the environment of such a worker; start one if needed."""
        assert self._supervisor is not None
        if self._fork_server_argv is None:
            return None
        env = child_environment(
            mode,
            os.environ,
            gpu=self._gpu,
            sandbox=self._sandbox(),
            cores=self._cores(),
            core_share=self._core_share(),
        )
        for fork_server in [*self._supervisor.fork_servers.values()]:
            if fork_server.env == env:
                return fork_server
            # A variable has changed.
            if languages.is_interpreting(fork_server.env) == languages.is_interpreting(env):
                self._supervisor.close_fork_server(fork_server)
        if not self._fork_servers_left:
            return None
        self._fork_servers_left -= 1
        self._warmed_up.clear()
        return self._supervisor.open_fork_server([*self._fork_server_argv, *FD], env)

    def restart_fork_servers(self) -> None:
        """End the fork servers: the next worker is forked from a new one."""
        if self._supervisor is not None:
            for fork_server in [*self._supervisor.fork_servers.values()]:
                self._supervisor.close_fork_server(fork_server)


__all__ = ["WorkerPool"]
