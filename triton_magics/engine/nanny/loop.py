"""The nanny's loop: commands, the notebook's end, ended children."""

from __future__ import annotations

import ctypes
import json
import os
import selectors
import shutil
import signal
import socket
import time
from functools import partial

from .home import claim, sweep_stale, sweep_unused
from .processes import children, excess, signalled, tree
from .start import out_of_the_way, start
from .worker import Worker
from .zygote import Unforked, Zygote

TYPE_CHECKING = False  # importing typing would take as long as half of this package
if TYPE_CHECKING:
    from typing import Any

TICK_S = 0.005
WATCH_S = 0.2
LEAVE_S = 10.0
FORK_S = 5.0  # a fork takes 0.02 s; a zygote that does not answer is stopped, or ill
_PR_SET_CHILD_SUBREAPER = 36
JOB_CONTROL = {"stop": signal.SIGSTOP, "continue": signal.SIGCONT}
ASK = signal.SIGURG


class Nanny:
    """Its workers and zygotes, and what is to be done about them."""

    def __init__(self, control: socket.socket, notebook_pidfd: int, home: str) -> None:
        self._control = control
        self._home = home
        self._workers: dict[int, Worker] = {}
        self._zygotes: dict[int, Zygote] = {}
        self._descriptors: list[int] = []
        self._buffer = b""
        self._leaving = False
        self._out_of_reach: set[int] = set()
        self._next_watch = 0.0
        self._selector = selectors.DefaultSelector()
        self._selector.register(control, selectors.EVENT_READ, self._read_commands)
        self._selector.register(_wakeups(), selectors.EVENT_READ, None)
        if notebook_pidfd >= 0:
            self._selector.register(notebook_pidfd, selectors.EVENT_READ, self.leave)

    def leave(self) -> None:
        """Ends the loop, and with it every worker."""
        self._leaving = True

    def serve(self) -> None:
        """Works until the notebook is gone or hangs up, then kills all that is left."""
        while not self._leaving:
            self._turn()
        deadline = time.monotonic() + LEAVE_S
        self._zygotes.clear()  # from here on they are killed like all that is left
        for worker in self._workers.values():
            worker.doomed = True
        while (self._workers or children() - self._out_of_reach) and time.monotonic() < deadline:
            self._sweep(everything=True)
            time.sleep(TICK_S)
        shutil.rmtree(self._home, ignore_errors=True)

    def _turn(self) -> None:
        busy = any(worker.doomed for worker in self._workers.values())
        pause = TICK_S if busy else WATCH_S if self._workers else None
        for key, _ in self._selector.select(pause):
            if key.data is None:
                _drain(key.fd)
            else:
                key.data()
        self._watch()
        self._sweep()

    def _watch(self) -> None:
        """Dooms a worker whose processes take too much memory, or are too many."""
        if time.monotonic() < self._next_watch:
            return
        self._next_watch = time.monotonic() + WATCH_S
        for worker in self._workers.values():
            if not worker.doomed:
                worker.excess = excess(tree({worker.pid}), worker.memory_bytes)
                worker.doomed = worker.excess is not None
        left = self._orphans()
        limit = min((w.memory_bytes for w in self._workers.values()), default=0)
        if left and limit and excess(tree(left), limit):
            for pid in left:
                signalled(pid, signal.SIGKILL)

    # ---------------------------------------------------------------------------- commands

    def _read_commands(self) -> None:
        try:
            data, descriptors, _, _ = socket.recv_fds(self._control, 65536, 16)
        except OSError:
            data, descriptors = b"", []
        self._descriptors += [out_of_the_way(fd) for fd in descriptors]
        if not data:
            self.leave()
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        for line in lines:
            self._obey(json.loads(line))

    def _obey(self, command: dict[str, Any]) -> None:
        if command["do"] == "open":
            self._open(command)
        elif command["do"] == "spawn":
            self._spawn(command)
        elif command["do"] == "kill":
            self._kill(command["id"])
        elif command["do"] == "ask":
            if worker := self._workers.get(command["id"]):
                signalled(worker.pid, ASK, group=True)
        else:
            self._hold(command["id"], command["do"])

    def _kill(self, number: int) -> None:
        if worker := self._workers.get(number):
            worker.doomed = True
        elif number in self._zygotes:
            self._lose_zygote(number, "it was told to go")
        else:
            for zygote in self._zygotes.values():
                self._forget_waiting(zygote, number)
            self._gone(number, "it was gone already")

    def _hold(self, number: int, how: str) -> None:
        """Stops a worker or a zygote, or lets it go on."""
        found = self._workers.get(number) or self._zygotes.get(number)
        if found:
            signalled(found.pid, JOB_CONTROL[how], group=True)
        if isinstance(found, Zygote):
            found.held = how == "stop"
            self._fork_those_who_wait(number)

    def _spawn(self, command: dict[str, Any]) -> None:
        data, output = self._descriptors.pop(0), self._descriptors.pop(0)
        zygote = self._zygotes.get(command["zygote"])
        if zygote is None:
            self._start_alone(command, data, output)
        else:
            zygote.waiting.append((command, data, output))
            self._fork_those_who_wait(command["zygote"])

    def _start_alone(self, command: dict[str, Any], data: int, output: int) -> None:
        """Starts a worker by its own command."""
        try:
            self._begun(command, start(command, data, output))
        except OSError as error:
            self._gone(command["id"], str(error))
        finally:
            os.close(data)
            os.close(output)

    def _begun(self, command: dict[str, Any], pid: int, guard: int | None = None) -> None:
        scratch, memory_bytes = command["scratch"], command["memory_bytes"]
        self._workers[command["id"]] = Worker(pid, scratch, memory_bytes, guard=guard)
        self._tell(started=command["id"], pid=pid, guard=guard)

    def _gone(self, number: int, error: str) -> None:
        self._tell(gone=number, code=None, signal=None, error=error)

    # ---------------------------------------------------------------------------- zygotes

    def _open(self, command: dict[str, Any]) -> None:
        talk, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        data = out_of_the_way(theirs.detach())
        nowhere = out_of_the_way(os.open(os.devnull, os.O_RDWR))
        try:
            pid = start(command, data, nowhere)
        except OSError as error:
            talk.close()
            self._gone(command["id"], str(error))
        else:
            talk.settimeout(FORK_S)
            self._zygotes[command["id"]] = Zygote(pid, talk)
            hear = partial(self._hear_zygote, command["id"])
            self._selector.register(talk, selectors.EVENT_READ, hear)
            self._tell(started=command["id"], pid=pid, guard=None)
        finally:
            os.close(data)
            os.close(nowhere)

    def _hear_zygote(self, number: int) -> None:
        """It is ready, or it has ended."""
        zygote = self._zygotes.get(number)
        if zygote is None:
            return
        try:
            zygote.ready = bool(zygote.talk.recv(64))
        except OSError:
            zygote.ready = False
        if zygote.ready:
            self._fork_those_who_wait(number)
        else:
            self._lose_zygote(number, "it has ended")

    def _fork_those_who_wait(self, number: int) -> None:
        zygote = self._zygotes[number]
        while zygote.ready and not zygote.held and zygote.waiting:
            command, data, output = zygote.waiting[0]
            try:
                pid, guard = zygote.fork(command, data, output)
            except Unforked as error:
                self._lose_zygote(number, str(error), asked=error.asked)
                return
            self._begun(command, pid, guard)
            del zygote.waiting[0]
            os.close(data)
            os.close(output)

    def _lose_zygote(self, number: int, why: str, *, asked: bool = False) -> None:
        """Ends it; those who wait for it are started by themselves.

        Args:
            asked: the first of them may have been forked all the same: it finds that the other end
                of its socket is closed, and ends.
        """
        zygote = self._zygotes.pop(number)
        self._selector.unregister(zygote.talk)
        zygote.talk.close()
        signalled(zygote.pid, signal.SIGKILL, group=True)
        self._gone(number, why)
        if asked:
            self._gone(zygote.waiting[0][0]["id"], why)
            self._forget_waiting(zygote, zygote.waiting[0][0]["id"])
        for waiting in zygote.waiting:
            self._start_alone(*waiting)

    def _forget_waiting(self, zygote: Zygote, number: int) -> None:
        """Drops a worker that was to be forked."""
        for entry in [entry for entry in zygote.waiting if entry[0]["id"] == number]:
            zygote.waiting.remove(entry)
            os.close(entry[1])
            os.close(entry[2])

    # ---------------------------------------------------------------------------- answers

    def _tell(self, **answer: object) -> None:
        try:
            self._control.sendall(json.dumps(answer).encode() + b"\n")
        except OSError:
            self.leave()

    # ------------------------------------------------------------------------------- sweep

    def _sweep(self, *, everything: bool = False) -> None:
        """One round: notes who ended, kills and reaps what must go, reports who is gone."""
        for worker in self._workers.values():
            worker.look()
        doomed = {i: worker for i, worker in self._workers.items() if worker.doomed}
        for worker in doomed.values():
            worker.strike()
        orphans = self._orphans()
        if doomed or everything:
            self._out_of_reach |= {pid for pid in orphans if not signalled(pid, signal.SIGKILL)}
        for pid in orphans:
            os.waitpid(pid, os.WNOHANG)
        if doomed and not self._orphans() - self._out_of_reach:
            self._report(doomed)

    def _orphans(self) -> set[int]:
        """Children that are neither workers nor zygotes: what ended workers have left."""
        ours = {zygote.pid for zygote in self._zygotes.values()}
        ours.update(*(worker.pids for worker in self._workers.values() if not worker.reaped))
        return children() - ours

    def _report(self, doomed: dict[int, Worker]) -> None:
        for number, worker in doomed.items():
            if worker.reaped:
                del self._workers[number]
                self._tell(gone=number, **worker.end())
                shutil.rmtree(worker.scratch, ignore_errors=True)


def _wakeups() -> int:
    """A descriptor that is readable after SIGCHLD, so that the loop needs no polling."""
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
    """Serves until the notebook is gone."""
    become_subreaper()
    for fd in (control_fd, notebook_pidfd):
        if fd >= 0:  # a worker that had a copy would hide this process's end from the notebook
            os.set_inheritable(fd, False)
    nanny = Nanny(socket.socket(fileno=control_fd), notebook_pidfd, home)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: nanny.leave())
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    lock = claim(home)
    sweep_stale(home)
    sweep_unused(home)
    nanny.serve()
    os.close(lock)


def become_subreaper() -> None:
    """Makes orphans of this process's descendants its children; nothing where there is no prctl."""
    prctl = getattr(ctypes.CDLL(None, use_errno=True), "prctl", None)
    if prctl:
        prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
