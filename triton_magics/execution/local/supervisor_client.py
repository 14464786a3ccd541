"""The workers and fork servers of a supervisor process, as the executor sees them."""

from __future__ import annotations

import os
import select
import socket
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from triton_magics.execution.job_requests import Mode
from triton_magics.execution.local.supervisor.process_table import MARK, kill_marked
from triton_magics.execution.local.supervisor_process import SupervisorProcess
from triton_magics.execution.local.worker_process import Exit, Worker
from triton_magics.execution.scratch import SCRATCH

KILL_S = 10.0
NO_LIMIT = 2**63


@dataclass
class ForkServer:
    """A process that forks workers.

    Attributes:
        number: its id in commands.
        env: environment of it and its workers.
        pid: None until it has started.
    """

    number: int
    env: dict[str, str]
    pid: int | None = None


class SupervisorClient:
    """Starts the supervisor process, sends it commands and tracks its workers.

    Not thread-safe, except for `hang_up`.

    Attributes:
        workers: by their id in commands.
        fork_servers: by their id in commands.
    """

    def __init__(self, home: Path, env: Mapping[str, str]) -> None:
        """Start the supervisor.

        Args:
            home: the folder for its workers' scratch folders; the supervisor removes it at its end.
            env: the supervisor's environment.

        Raises:
            WorkerError: it could not be started.
        """
        self.workers: dict[int, Worker] = {}
        self.fork_servers: dict[int, ForkServer] = {}
        self._leaving: dict[int, tuple[Worker, float]] = {}  # killed, with the deadline
        self._stuck: dict[int, Worker] = {}  # killed, and not gone by the deadline
        self._home = home
        self._count = 0
        self._supervisor = SupervisorProcess(
            home, env, on_answer=self._handle_answer, on_loss=self._end_workers
        )

    @property
    def pid(self) -> int:
        """The pid of the supervisor."""
        return self._supervisor.pid

    @property
    def is_foreign(self) -> bool:
        """True in a forked copy of the process that started the supervisor."""
        return self._supervisor.is_foreign

    @property
    def is_lost(self) -> bool:
        """True if the supervisor has ended or does not respond."""
        return self._supervisor.is_lost

    def scratch(self) -> Path:
        """Return the folder for the next worker; it is removed with that worker."""
        return self._home / str(self._count + 1)

    @property
    def pids(self) -> list[int | None]:
        """The pids of its processes; None for each that has not started yet."""
        return _pids(self.workers.values()) + [s.pid for s in self.fork_servers.values()]

    @property
    def all_pids(self) -> list[int | None]:
        """Return those pids, and those of killed workers that are not gone yet."""
        return self.pids + _pids(worker for worker, _ in self._leaving.values())

    def open_fork_server(self, argv: Sequence[str], env: Mapping[str, str]) -> ForkServer:
        """Start a fork server without waiting for it."""
        scratch = str(self.scratch())  # for its warm-up; if it is killed, removed with the rest
        self._count += 1
        fork_server = ForkServer(self._count, {**env})
        self.fork_servers[fork_server.number] = fork_server
        command = {"do": "open", "id": fork_server.number, "argv": [*argv], "cwd": "/"}
        self._supervisor.command(command | {"env": self._with_mark(env) | {SCRATCH: scratch}})
        return fork_server

    def close_fork_server(self, fork_server: ForkServer) -> None:
        """End a fork server; its workers continue."""
        self.fork_servers.pop(fork_server.number, None)
        self._supervisor.command({"do": "kill", "id": fork_server.number})

    def spawn(
        self,
        mode: Mode,
        argv: Sequence[str],
        env: Mapping[str, str],
        cwd: str,
        *,
        memory_bytes: int = NO_LIMIT,
        fork_server: ForkServer | None = None,
        is_confined: bool = True,
    ) -> Worker:
        """Start a worker without waiting for it.

        Args:
            mode, argv, env, cwd: of its process.
            memory_bytes: limit for it and its descendants.
            fork_server: forks it once ready; None: it is started from argv.
            is_confined: it enters the sandbox that its environment names.
        """
        scratch = str(self.scratch())
        self._count += 1
        data, their_data = socket.socketpair()
        output, their_output = os.pipe()
        data.setblocking(False)
        os.set_blocking(output, False)
        worker = Worker(self._count, mode, data, output, scratch=Path(scratch))
        self.workers[worker.number] = worker
        self._supervisor.command(
            {"do": "spawn", "id": worker.number, "argv": [*argv], "cwd": cwd}
            | {"env": self._with_mark(env)}
            | {"scratch": scratch, "memory_bytes": memory_bytes, "mode": mode}
            | {"is_confined": is_confined}
            | {"fork_server": fork_server.number if fork_server else None},
            [their_data.fileno(), their_output],
        )
        their_data.close()
        os.close(their_output)
        return worker

    def _with_mark(self, env: Mapping[str, str]) -> dict[str, str]:
        return {**env, MARK: self._home.name}

    def pause(self, worker: Worker | ForkServer) -> None:
        """Stop the process group of a worker or fork server, until `resume`."""
        self._supervisor.command({"do": "stop", "id": worker.number})

    def resume(self, worker: Worker | ForkServer) -> None:
        """Continue a paused process group."""
        self._supervisor.command({"do": "continue", "id": worker.number})

    def dump_stack(self, worker: Worker) -> None:
        """Make a worker write its stacks into its scratch folder."""
        self._supervisor.command({"do": "dump_stack", "id": worker.number})

    def kill(self, worker: Worker, within_s: float = KILL_S) -> bool:
        """Kill a worker and its descendants; return False if one is left by the deadline.

        A process that hangs in a driver can't be killed until the driver returns; the supervisor
        keeps trying. A worker of an earlier supervisor has ended with that.
        """
        if self.workers.get(worker.number) is not worker:
            worker.close()
            return worker not in self._stuck.values()
        deadline = time.monotonic() + within_s
        if worker.exit is None:
            self._supervisor.command({"do": "kill", "id": worker.number})
        while worker.exit is None and (left := deadline - time.monotonic()) > 0:
            self.poll(left)
        worker.close()
        self.workers.pop(worker.number, None)
        if worker.exit is None:
            self._stuck[worker.number] = worker
        return worker.exit is not None

    def kill_without_waiting(self, worker: Worker) -> None:
        """Kill a worker without waiting for its end."""
        if worker.exit is None:
            self._supervisor.command({"do": "kill", "id": worker.number})
            self._leaving[worker.number] = worker, time.monotonic() + KILL_S
        worker.close()
        self.workers.pop(worker.number, None)

    def wait_for_killed(self) -> None:
        """Wait until all killed workers are gone, or stuck."""
        while self._leaving and not self.is_lost:
            self.poll(max(until for _, until in self._leaving.values()) - time.monotonic())
            self._update_stuck()

    @property
    def stuck(self) -> tuple[Worker, ...]:
        """Workers that were killed and are not gone by the deadline."""
        self._update_stuck()
        return tuple(self._stuck.values())

    def _update_stuck(self) -> None:
        for number, (worker, until) in [*self._leaving.items()]:
            if time.monotonic() >= until:
                del self._leaving[number]
                self._stuck[number] = worker

    def poll(self, timeout_s: float, wake_fd: int | None = None) -> None:
        """Read the messages of the supervisor and the workers.

        Args:
            timeout_s: longest wait for the first one; seconds.
            wake_fd: a descriptor that also ends the wait; it is not read.
        """
        sources: dict[int, Callable[[], object]] = {}
        for worker in self.workers.values():
            sources |= worker.sources()
        if not self.is_lost:
            sources[self._supervisor.fileno()] = self._supervisor.read_answers
        poller = select.poll()
        for fd in [*sources, *([] if wake_fd is None else [wake_fd])]:
            poller.register(fd, select.POLLIN)
        timeout_s = self._supervisor.longest_wait_s(timeout_s)
        for fd, _ in poller.poll(max(0.0, timeout_s) * 1000):
            if fd in sources:
                sources[fd]()
        self._supervisor.check_response()

    def ping(self) -> None:
        """Ask the supervisor for a sign of life; `poll` checks that it comes."""
        self._supervisor.ping()

    def hang_up(self) -> None:
        """Make the supervisor kill all processes and end; safe in any thread."""
        self._supervisor.hang_up()

    def close(self) -> None:
        """End the supervisor and its workers and wait for it; a second call does nothing.

        A forked copy of the notebook only closes its own descriptors.
        """
        was_lost = self.is_lost
        self.hang_up()
        for worker in self.workers.values():
            worker.close()
        self.workers.clear()
        self._leaving.clear()
        self.fork_servers.clear()
        self._supervisor.close()
        if was_lost and not self.is_foreign:
            kill_marked(self._home.name)

    def _handle_answer(self, answer: dict[str, Any]) -> None:
        number = answer["started"] if "started" in answer else answer["gone"]
        if "gone" in answer:
            self._stuck.pop(number, None)
            self._leaving.pop(number, None)
        child = self.workers.get(number) or self.fork_servers.get(number)
        if child is None:
            return
        if "started" in answer:
            child.pid = answer["pid"]
            if isinstance(child, Worker):
                child.watchdog = answer["watchdog"]
        elif isinstance(child, ForkServer):
            del self.fork_servers[number]
        else:
            child.set_exit(
                Exit(answer["code"], answer["signal"], answer["error"], answer.get("over"))
            )

    def _end_workers(self, how: Exit) -> None:
        """Note that all workers have ended like this, because the supervisor is lost."""
        for worker in self.workers.values():
            if worker.exit is None:
                worker.set_exit(how)


def _pids(workers: Iterable[Worker]) -> list[int | None]:
    """Return the pids of workers' own processes; None for each worker that has not started yet."""
    pids: list[int | None] = []
    for worker in workers:
        others = (worker.watchdog, worker.subject_pid)
        pids += [worker.pid, *(pid for pid in others if pid is not None)]
    return pids


__all__ = ["SupervisorClient"]
