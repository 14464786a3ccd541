"""The nanny and its workers, seen from the notebook."""

from __future__ import annotations

import json
import os
import select
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from triton_magics.engine.process import CHUNK_BYTES, SEND_S, Exit, Worker
from triton_magics.engine.protocol import Mode
from triton_magics.errors import WorkerError

KILL_S = 10.0
CLOSE_S = 5.0
NO_LIMIT = 2**63
_NANNY = Path(__file__).with_name("nanny")


@dataclass
class Zygote:
    """A process that forks workers, as far as it is known here.

    Attributes:
        env: what it and its workers run with.
        pid: None until it has been started.
    """

    number: int
    env: dict[str, str]
    pid: int | None = None


class Nursery:
    """The nanny process and its workers, seen from the notebook.

    Not thread-safe: one caller at a time. `hang_up` alone may be called by anyone at any time.
    """

    def __init__(self, home: Path, env: Mapping[str, str]) -> None:
        """Starts the nanny.

        Args:
            home: a folder of its own for its workers' scratch folders; it removes it at its end.
            env: the nanny's environment.

        Raises:
            WorkerError: it could not be started.
        """
        self.workers: dict[int, Worker] = {}
        self.zygotes: dict[int, Zygote] = {}
        self._leaving: dict[int, tuple[Worker, float]] = {}  # killed, and until when it may take
        self._stuck: dict[int, Worker] = {}  # killed, and not gone in time
        self.lost = False
        self._hung_up = False
        self._home = home
        self._count = 0
        self._buffer = b""
        self._owner = os.getpid()
        self._control, theirs = socket.socketpair()
        try:
            self._process = _start_nanny(theirs, home, env)
        except OSError as error:
            self._control.close()
            raise WorkerError(f"the nanny process could not be started: {error}") from error
        finally:
            theirs.close()
        self._control.setblocking(False)

    @property
    def pid(self) -> int:
        """The nanny's process."""
        return self._process.pid

    @property
    def foreign(self) -> bool:
        """Whether this is a forked copy of the process that owns the nanny."""
        return os.getpid() != self._owner

    def scratch(self) -> Path:
        """The folder of the worker to be spawned next; removed when that worker is gone."""
        return self._home / str(self._count + 1)

    @property
    def pids(self) -> list[int | None]:
        """The processes that the nanny has started; None: one of which that is not known yet."""
        return _pids(self.workers.values()) + [zygote.pid for zygote in self.zygotes.values()]

    @property
    def known(self) -> list[int | None]:
        """Those, and the ones that are on their way out."""
        return self.pids + _pids(worker for worker, _ in self._leaving.values())

    def open_zygote(self, argv: Sequence[str], env: Mapping[str, str]) -> Zygote:
        """Has a zygote started, and does not wait for it."""
        self._count += 1
        zygote = Zygote(self._count, {**env})
        self.zygotes[zygote.number] = zygote
        self._command(
            {"do": "open", "id": zygote.number, "argv": [*argv], "env": zygote.env, "cwd": "/"}
        )
        return zygote

    def close_zygote(self, zygote: Zygote) -> None:
        """Ends a zygote; its workers live on."""
        self.zygotes.pop(zygote.number, None)
        self._command({"do": "kill", "id": zygote.number})

    def spawn(
        self,
        mode: Mode,
        argv: Sequence[str],
        env: Mapping[str, str],
        cwd: str,
        *,
        memory_bytes: int = NO_LIMIT,
        zygote: Zygote | None = None,
    ) -> Worker:
        """Has a worker started, and does not wait for it.

        Args:
            mode, argv, env, cwd: of its process.
            memory_bytes: what it and all that it starts may take.
            zygote: that forks it once it is ready, instead of a start from argv.
        """
        scratch = str(self.scratch())
        self._count += 1
        data, their_data = socket.socketpair()
        output, their_output = os.pipe()
        data.setblocking(False)
        os.set_blocking(output, False)
        worker = Worker(self._count, mode, data, output, scratch=Path(scratch))
        self.workers[worker.number] = worker
        self._command(
            {"do": "spawn", "id": worker.number, "argv": [*argv], "env": {**env}, "cwd": cwd}
            | {"scratch": scratch, "memory_bytes": memory_bytes, "mode": mode}
            | {"zygote": zygote.number if zygote else None},
            [their_data.fileno(), their_output],
        )
        their_data.close()
        os.close(their_output)
        return worker

    def pause(self, worker: Worker | Zygote) -> None:
        """Stops a worker or zygote where it is, until `resume`."""
        self._command({"do": "stop", "id": worker.number})

    def resume(self, worker: Worker | Zygote) -> None:
        """Lets a paused one go on."""
        self._command({"do": "continue", "id": worker.number})

    def ask(self, worker: Worker) -> None:
        """Has a worker write where it is into its scratch folder."""
        self._command({"do": "ask", "id": worker.number})

    def kill(self, worker: Worker, within_s: float = KILL_S) -> bool:
        """Kills a worker and all that it started; whether all of it was gone in time.

        A process that hangs in a driver can't be killed until the driver lets go of it; the nanny
        goes on with that.
        """
        deadline = time.monotonic() + within_s
        if worker.exit is None:
            self._command({"do": "kill", "id": worker.number})
        while worker.exit is None and (left := deadline - time.monotonic()) > 0:
            self.turn(left)
        worker.close()
        self.workers.pop(worker.number, None)
        if worker.exit is None:
            self._stuck[worker.number] = worker
        return worker.exit is not None

    def let_go(self, worker: Worker) -> None:
        """Has a worker killed, and waits for nothing."""
        if worker.exit is None:
            self._command({"do": "kill", "id": worker.number})
            self._leaving[worker.number] = worker, time.monotonic() + KILL_S
        worker.close()
        self.workers.pop(worker.number, None)

    def wait_for_the_leaving(self) -> None:
        """Until all that were let go are gone, or stuck."""
        while self._leaving and not self.lost:
            self.turn(max(until for _, until in self._leaving.values()) - time.monotonic())
            self._note_the_late()

    @property
    def stuck(self) -> tuple[Worker, ...]:
        """Those that were killed and are not gone in time."""
        self._note_the_late()
        return tuple(self._stuck.values())

    def _note_the_late(self) -> None:
        for number, (worker, until) in [*self._leaving.items()]:
            if time.monotonic() >= until:
                del self._leaving[number]
                self._stuck[number] = worker

    def turn(self, timeout_s: float, wake_fd: int | None = None) -> None:
        """Waits until something comes in, at most that long, and notes it.

        Args:
            timeout_s: seconds.
            wake_fd: a descriptor that ends the wait as well; it is not read.
        """
        sources: dict[int, Callable[[], object]] = {}
        for worker in self.workers.values():
            sources |= worker.sources()
        if not self.lost:
            sources[self._control.fileno()] = self._read_answers
        poller = select.poll()
        for fd in [*sources, *([] if wake_fd is None else [wake_fd])]:
            poller.register(fd, select.POLLIN)
        for fd, _ in poller.poll(max(0.0, timeout_s) * 1000):
            if fd in sources:
                sources[fd]()

    def hang_up(self) -> None:
        """Makes the nanny kill everything and end; safe from any thread."""
        if not self.foreign:
            self._hung_up = True
            try:
                self._control.shutdown(socket.SHUT_RDWR)
            except OSError:  # it is gone already
                self.lost = True

    def close(self) -> None:
        """Ends the nanny and its workers, and waits for that; again: nothing.

        In a forked copy of the notebook only its own descriptors are closed.
        """
        self.hang_up()
        for worker in self.workers.values():
            worker.close()
        self.workers.clear()
        self._leaving.clear()
        self.zygotes.clear()
        self.lost = True
        self._control.close()
        if self.foreign:
            self._process.returncode = 0  # not our child: nothing to wait for, nor to warn of
        else:
            self._wait()

    def _wait(self) -> None:
        try:
            self._process.wait(CLOSE_S)
        except subprocess.TimeoutExpired:
            # A worker hangs in a driver; the nanny stays with it, and needs nobody to wait for it.
            self._process.returncode = 0

    # ------------------------------------------------------------------------- the nanny

    def _command(self, command: dict[str, Any], descriptors: Sequence[int] = ()) -> None:
        line = json.dumps(command).encode() + b"\n"
        self._control.settimeout(SEND_S)
        try:
            sent = socket.send_fds(self._control, [line], descriptors)
            self._control.sendall(line[sent:])
        except OSError:
            self._lose()
        else:
            self._control.setblocking(False)

    def _read_answers(self) -> None:
        try:
            data = self._control.recv(CHUNK_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._lose()
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        for line in lines:
            self._note(json.loads(line))

    def _note(self, answer: dict[str, Any]) -> None:
        number = answer["started"] if "started" in answer else answer["gone"]
        if "gone" in answer:
            self._stuck.pop(number, None)
            self._leaving.pop(number, None)
        child = self.workers.get(number) or self.zygotes.get(number)
        if child is None:
            return
        if "started" in answer:
            child.pid = answer["pid"]
            if isinstance(child, Worker):
                child.guard = answer["guard"]
        elif isinstance(child, Zygote):
            del self.zygotes[number]
        else:
            child.end(Exit(answer["code"], answer["signal"], answer["error"], answer.get("over")))

    def _lose(self) -> None:
        """The nanny is gone; its workers die with it (PR_SET_PDEATHSIG)."""
        self.lost = True
        error = "the process that watches over it is gone"
        how = Exit(error="the engine was closed", ours=True) if self._hung_up else Exit(error=error)
        for worker in self.workers.values():
            if worker.exit is None:
                worker.end(how)


def _pids(workers: Iterable[Worker]) -> list[int | None]:
    """Their processes and their guards'; None: one of which that is not known yet."""
    pids: list[int | None] = []
    for worker in workers:
        pids += [worker.pid] if worker.guard is None else [worker.pid, worker.guard]
    return pids


def _start_nanny(
    control: socket.socket, home: Path, env: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    notebook = _own_pidfd()
    try:
        return subprocess.Popen(
            [sys.executable, "-I", "-S", str(_NANNY), str(control.fileno()), str(notebook), home],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=dict(env),
            cwd="/",
            pass_fds=[fd for fd in (control.fileno(), notebook) if fd >= 0],
            start_new_session=True,
        )
    finally:
        if notebook >= 0:
            os.close(notebook)


def _own_pidfd() -> int:
    """A descriptor that tells the nanny of this process's end; -1 on a kernel before 5.3.

    End-of-file on the control socket is not enough: a process that the user forked holds a copy of
    it.
    """
    try:
        return os.pidfd_open(os.getpid())
    except OSError:
        return -1


__all__ = ["Nursery"]
