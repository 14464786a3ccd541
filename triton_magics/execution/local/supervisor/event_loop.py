"""The supervisor's loop: executes commands, enforces limits, kills and reaps."""

from __future__ import annotations

import ctypes
import json
import os
import selectors
import signal
import socket
import time
from functools import partial

from .fork_client import ForkServerConnection, Unforked
from .process_group import WorkerGroup
from .process_table import children, excess, send_signal, tree
from .scratch_folders import claim, remove_later, remove_tree, sweep_later
from .spawn import move_to_high_descriptor, start

TYPE_CHECKING = False  # importing typing would take as long as half of this package
if TYPE_CHECKING:
    from typing import Any

TICK_S = 0.005
CHECK_LIMITS_S = 0.2
LEAVE_S = 10.0
FORK_S = 5.0  # a fork takes 0.02 s; a fork server that does not answer is stopped or stuck
_PR_SET_CHILD_SUBREAPER = 36
JOB_CONTROL = {"stop": signal.SIGSTOP, "continue": signal.SIGCONT}
DUMP_STACK = signal.SIGURG


class Supervisor:
    """The state of the supervisor: its workers and fork servers."""

    def __init__(self, control: socket.socket, notebook_pidfd: int, home: str) -> None:
        self._control = control
        self._home = home
        self._workers: dict[int, WorkerGroup] = {}
        self._fork_servers: dict[int, ForkServerConnection] = {}
        self._descriptors: list[int] = []
        self._buffer = b""
        self._leaving = False
        self._unkillable: set[int] = set()
        self._next_check = 0.0
        self._selector = selectors.DefaultSelector()
        self._selector.register(control, selectors.EVENT_READ, self._read_commands)
        self._selector.register(_wakeups(), selectors.EVENT_READ, None)
        if notebook_pidfd >= 0:
            self._selector.register(notebook_pidfd, selectors.EVENT_READ, self.leave)

    def leave(self) -> None:
        """End the loop, and with it every worker."""
        self._leaving = True

    def serve(self) -> None:
        """Run until the notebook ends or hangs up, then kill all processes."""
        while not self._leaving:
            self._run_once()
        deadline = time.monotonic() + LEAVE_S
        self._fork_servers.clear()  # now they count as orphans, which are killed
        for worker in self._workers.values():
            worker.must_end = True
        while (self._workers or children() - self._unkillable) and time.monotonic() < deadline:
            self._sweep(everything=True)
            time.sleep(TICK_S)
        remove_tree(self._home)

    def _run_once(self) -> None:
        busy = any(worker.must_end for worker in self._workers.values())
        pause = TICK_S if busy else CHECK_LIMITS_S if self._workers else None
        for key, _ in self._selector.select(pause):
            if key.data is None:
                _drain(key.fd)
            else:
                key.data()
        self._check_limits()
        self._sweep()

    def _check_limits(self) -> None:
        """Mark a worker to be killed if its processes take too much memory or are too many."""
        if time.monotonic() < self._next_check:
            return
        self._next_check = time.monotonic() + CHECK_LIMITS_S
        for worker in self._workers.values():
            if not worker.must_end:
                worker.excess = excess(tree({worker.pid}), worker.memory_bytes)
                worker.must_end = worker.excess is not None
        orphans = self._orphans()
        limit = min((w.memory_bytes for w in self._workers.values()), default=0)
        if orphans and limit and excess(tree(orphans), limit):
            for pid in orphans:
                send_signal(pid, signal.SIGKILL)

    # ---------------------------------------------------------------------------- commands

    def _read_commands(self) -> None:
        try:
            data, descriptors, _, _ = socket.recv_fds(self._control, 65536, 16)
        except OSError:
            data, descriptors = b"", []
        self._descriptors += [move_to_high_descriptor(fd) for fd in descriptors]
        if not data:
            self.leave()
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        for line in lines:
            self._execute(json.loads(line))

    def _execute(self, command: dict[str, Any]) -> None:
        if command["do"] == "open":
            self._open(command)
        elif command["do"] == "spawn":
            self._spawn(command)
        elif command["do"] == "ping":
            self._send(pong=True)
        elif command["do"] == "kill":
            self._kill(command["id"])
        elif command["do"] == "dump_stack":
            if worker := self._workers.get(command["id"]):
                send_signal(worker.pid, DUMP_STACK, group=True)
        else:
            self._pause_or_resume(command["id"], command["do"])

    def _kill(self, number: int) -> None:
        if worker := self._workers.get(number):
            worker.must_end = True
        elif number in self._fork_servers:
            self._end_fork_server(number, "it was closed")
        elif any(self._drop_waiting(server, number) for server in self._fork_servers.values()):
            self._report_gone(number, "it had not started")

    def _pause_or_resume(self, number: int, command: str) -> None:
        """Stop or continue the process group of a worker or a fork server."""
        process = self._workers.get(number) or self._fork_servers.get(number)
        if process:
            send_signal(process.pid, JOB_CONTROL[command], group=True)
        if isinstance(process, ForkServerConnection):
            process.is_paused = command == "stop"
            self._fork_waiting(number)

    def _spawn(self, command: dict[str, Any]) -> None:
        data, output = self._descriptors.pop(0), self._descriptors.pop(0)
        fork_server = self._fork_servers.get(command["fork_server"])
        if fork_server is None:
            self._start_alone(command, data, output)
        else:
            fork_server.waiting.append((command, data, output))
            self._fork_waiting(command["fork_server"])

    def _start_alone(self, command: dict[str, Any], data: int, output: int) -> None:
        """Start a worker from its command line, without a fork server."""
        try:
            self._add_worker(command, start(command, data, output))
        except OSError as error:
            self._report_gone(command["id"], str(error))
        finally:
            os.close(data)
            os.close(output)

    def _add_worker(self, command: dict[str, Any], pid: int, watchdog: int | None = None) -> None:
        scratch, memory_bytes = command["scratch"], command["memory_bytes"]
        self._workers[command["id"]] = WorkerGroup(pid, scratch, memory_bytes, watchdog=watchdog)
        self._send(started=command["id"], pid=pid, watchdog=watchdog)

    def _report_gone(self, number: int, error: str) -> None:
        self._send(gone=number, code=None, signal=None, error=error)

    # ---------------------------------------------------------------------------- fork servers

    def _open(self, command: dict[str, Any]) -> None:
        control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        data = move_to_high_descriptor(theirs.detach())
        null = move_to_high_descriptor(os.open(os.devnull, os.O_RDWR))
        try:
            pid = start(command, data, null)
        except OSError as error:
            control.close()
            self._report_gone(command["id"], str(error))
        else:
            control.settimeout(FORK_S)
            self._fork_servers[command["id"]] = ForkServerConnection(pid, control)
            read = partial(self._read_fork_server, command["id"])
            self._selector.register(control, selectors.EVENT_READ, read)
            self._send(started=command["id"], pid=pid, watchdog=None)
        finally:
            os.close(data)
            os.close(null)

    def _read_fork_server(self, number: int) -> None:
        """Handle its message, that it is ready, or its end."""
        fork_server = self._fork_servers.get(number)
        if fork_server is None:
            return
        try:
            fork_server.ready = bool(fork_server.control.recv(64))
        except OSError:
            fork_server.ready = False
        if fork_server.ready:
            self._fork_waiting(number)
        else:
            self._end_fork_server(number, "it has ended")

    def _fork_waiting(self, number: int) -> None:
        fork_server = self._fork_servers[number]
        while fork_server.ready and not fork_server.is_paused and fork_server.waiting:
            command, data, output = fork_server.waiting[0]
            try:
                pid, watchdog = fork_server.fork(command, data, output)
            except Unforked as error:
                self._end_fork_server(number, str(error), was_requested=error.was_requested)
                return
            self._add_worker(command, pid, watchdog)
            del fork_server.waiting[0]
            os.close(data)
            os.close(output)

    def _end_fork_server(self, number: int, reason: str, *, was_requested: bool = False) -> None:
        """Kill a fork server and start its waiting workers without it.

        Args:
            number: of the fork server.
            reason: for the message.
            was_requested: the first waiting worker may have been forked. It is dropped: the other
                end of its socket is closed, so it ends.
        """
        fork_server = self._fork_servers.pop(number)
        self._selector.unregister(fork_server.control)
        fork_server.control.close()
        send_signal(fork_server.pid, signal.SIGKILL, group=True)
        self._report_gone(number, reason)
        if was_requested:
            self._report_gone(fork_server.waiting[0][0]["id"], reason)
            self._drop_waiting(fork_server, fork_server.waiting[0][0]["id"])
        for waiting in fork_server.waiting:
            self._start_alone(*waiting)

    def _drop_waiting(self, fork_server: ForkServerConnection, number: int) -> bool:
        """Drop a worker if it waits to be forked; return whether it did."""
        dropped = [entry for entry in fork_server.waiting if entry[0]["id"] == number]
        for entry in dropped:
            fork_server.waiting.remove(entry)
            os.close(entry[1])
            os.close(entry[2])
        return bool(dropped)

    # ---------------------------------------------------------------------------- answers

    def _send(self, **answer: object) -> None:
        try:
            self._control.sendall(json.dumps(answer).encode() + b"\n")
        except OSError:
            self.leave()

    # ------------------------------------------------------------------------------- sweep

    def _sweep(self, *, everything: bool = False) -> None:
        """Note the ended workers; kill and reap those to be killed; report those that are gone."""
        for worker in self._workers.values():
            worker.check_exit()
        ending = {i: worker for i, worker in self._workers.items() if worker.must_end}
        for worker in ending.values():
            worker.kill()
        orphans = self._orphans()
        if ending or everything:
            self._unkillable |= {pid for pid in orphans if not send_signal(pid, signal.SIGKILL)}
        for pid in orphans:
            os.waitpid(pid, os.WNOHANG)
        if ending and not self._orphans() - self._unkillable:
            self._report_ended(ending)

    def _orphans(self) -> set[int]:
        """Return children that are no workers or fork servers: descendants of ended workers."""
        ours = {fork_server.pid for fork_server in self._fork_servers.values()}
        ours.update(*(worker.pids for worker in self._workers.values() if not worker.reaped))
        return children() - ours

    def _report_ended(self, ending: dict[int, WorkerGroup]) -> None:
        for number, worker in ending.items():
            if worker.reaped:
                del self._workers[number]
                self._send(gone=number, **worker.exit_status())
                remove_later(worker.scratch)


def _wakeups() -> int:
    """Return a descriptor that is readable after SIGCHLD, so that the loop needs no polling."""
    read_end, write_end = os.pipe()
    os.set_blocking(read_end, False)
    os.set_blocking(write_end, False)
    signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    return read_end


def _drain(fd: int) -> None:
    try:
        while os.read(fd, 4096):
            pass
    except BlockingIOError:
        pass


def main(control_fd: int, notebook_pidfd: int, home: str) -> None:
    """Run the supervisor until the notebook ends."""
    become_subreaper()
    for fd in (control_fd, notebook_pidfd):
        if fd >= 0:  # a copy in a worker would hide this process's end from the notebook
            os.set_inheritable(fd, False)
    supervisor = Supervisor(socket.socket(fileno=control_fd), notebook_pidfd, home)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: supervisor.leave())
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    lock = claim(home)
    sweep_later(home)
    supervisor.serve()
    os.close(lock)


def become_subreaper() -> None:
    """Make orphaned descendants children of this process; without prctl do nothing."""
    prctl = getattr(ctypes.CDLL(None, use_errno=True), "prctl", None)
    if prctl:
        prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
