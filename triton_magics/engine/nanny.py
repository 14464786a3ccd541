"""The nanny: a small process that starts workers and sees to it that nothing of them is left.

Run by its path, `python -I -S nanny.py CONTROL_FD NOTEBOOK_PIDFD HOME`; the standard library only.
It is the subreaper of all that its workers start, so a daemon that left its parent, session and
process group becomes the nanny's own child, where it is found and killed. (The notebook must not be
that subreaper: it would adopt, and kill, the user's own background processes.)

One thread, and it stays so: PR_SET_PDEATHSIG, on which the workers rely, fires when the *thread*
that started them ends (prctl(2)). Every 5 ms while something is to die; five times a second it
looks whether a worker and what it has started take too much memory or are too many; else asleep.

Commands, one JSON object a line:
    {"do": "open", "id": 1, "argv": [...], "env": {...}, "cwd": "/"}
        starts a zygote: a process that has imported what workers need, and forks them
    {"do": "spawn", "id": 2, "argv": [...], "env": {...}, "cwd": "/", "scratch": "/...",
     "memory_bytes": 8589934592, "zygote": 1, "mode": "gpu"}
        with two descriptors (SCM_RIGHTS): the worker's data socket and the end of its output pipe;
        forked by the zygote once it is ready, or started from argv where there is none (null)
    {"do": "stop", "id": 1}         its process group, until
    {"do": "continue", "id": 1}
    {"do": "kill", "id": 1}
Answers:
    {"started": 1, "pid": 4711}
    {"gone": 1, "code": 0, "signal": null, "error": null}     when nothing of worker 1 is left, or
                                                              when zygote 1 forks no more
    {"gone": 1, "code": null, "signal": null, "over": "memory", "error": "it took 9.1 GiB ..."}
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import selectors
import shutil
import signal
import socket
import sys
import time
from functools import partial
from typing import Any

WORKER_DATA_FD = 3
TICK_S = 0.005
WATCH_S = 0.2
LOOK_S = 0.05
MAX_PROCESSES = 512  # a compile on a machine of many cores starts a few dozen
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
LEAVE_S = 10.0
FORK_S = 5.0  # a fork takes 0.02 s; a zygote that does not answer is stopped, or ill
JOB_CONTROL = {"stop": signal.SIGSTOP, "continue": signal.SIGCONT}
STALE_S = 60.0
_PR_SET_CHILD_SUBREAPER = 36
# Where the worker finds its data socket: above any number that one of its first three gets moved
# to.
_LOWEST_FD = 10


def become_subreaper() -> None:
    """Makes orphans of this process's descendants its children; nothing where there is no prctl."""
    prctl = getattr(ctypes.CDLL(None, use_errno=True), "prctl", None)
    if prctl:
        prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def children() -> set[int]:
    """The pids of this process's children, zombies too.

    Only this process reaps them, so no entry vanishes while the kernel writes the list: it is
    exact.
    """
    me = os.getpid()
    try:
        with open(f"/proc/self/task/{me}/children") as listing:
            return {int(pid) for pid in listing.read().split()}
    except FileNotFoundError:
        return _children_by_parent(me)


def _children_by_parent(parent: int) -> set[int]:
    """The same from /proc/*/stat, for kernels without CONFIG_PROC_CHILDREN; empty without /proc."""
    pids = (int(name) for name in _listing("/proc") if name.isdigit())
    return {pid for pid in pids if _parent(pid) == parent}


def _parent(pid: int) -> int | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            return int(stat.read().rpartition(b")")[2].split()[1])
    except OSError:
        return None


def _listing(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def tree(roots: set[int]) -> set[int]:
    """Those processes and all that they have started and not left behind."""
    found: set[int] = set()
    new = roots
    while new:
        found |= new
        new = {child for pid in new for child in children_of(pid)} - found
    return found


def children_of(pid: int) -> set[int]:
    """The children of a process, whichever of its threads started them."""
    found: set[int] = set()
    for thread in _listing(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{thread}/children") as listing:
                found.update(map(int, listing.read().split()))
        except OSError:  # it is gone, or the kernel does not tell
            continue
    return found


def excess(pids: set[int], memory_bytes: int) -> dict[str, str] | None:
    """What these processes have too much of, and a sentence about it; None: nothing.

    Memory that several share is counted once, where the plain sum would be too much.
    """
    if len(pids) > MAX_PROCESSES:
        return {"over": "processes", "error": f"it started more than {MAX_PROCESSES} processes"}
    resident = {pid: _resident_bytes(pid) for pid in pids}
    if sum(resident.values()) <= memory_bytes:
        return None
    used = _own_in_all(resident)
    if used <= memory_bytes:
        return None
    said = f"it took {used / 2**30:.1f} GiB of memory and may take {memory_bytes / 2**30:.1f}"
    return {"over": "memory", "error": said}


def _resident_bytes(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/statm") as statm:
            return int(statm.read().split()[1]) * PAGE_BYTES
    except (OSError, IndexError):
        return 0


def _own_in_all(resident: dict[int, int]) -> float:
    """What processes have in all, memory that several share counted once; bytes.

    To ask for one takes up to some 10 ms: of very many only the first are asked, and the others are
    taken to share as much.
    """
    until = time.monotonic() + LOOK_S
    own = seen = 0
    for pid in sorted(resident, key=resident.__getitem__, reverse=True):
        own += _own_bytes(pid)
        seen += resident[pid]
        if time.monotonic() > until:
            break
    return own * sum(resident.values()) / max(1, seen)


def _own_bytes(pid: int) -> int:
    """A process's share of memory: what it shares with others is divided among them."""
    try:
        with open(f"/proc/{pid}/smaps_rollup") as rollup:
            kib = next(line.split()[1] for line in rollup if line.startswith("Pss:"))
    except (OSError, StopIteration):
        return _resident_bytes(pid)
    return int(kib) * 1024


class Worker:
    """A worker's process, which is kept as a zombie until it is swept: its pid stays its own."""

    def __init__(self, pid: int, scratch: str, memory_bytes: int) -> None:
        self.pid = pid
        self.scratch = scratch
        self.memory_bytes = memory_bytes
        self.excess: dict[str, str] | None = None
        self.doomed = False
        self.reaped = False
        self.code: int | None = None
        self.signal: int | None = None

    def look(self) -> None:
        """Notes how it ended, if it did; it is doomed then, for its children must go too."""
        if self.doomed and (self.code is not None or self.signal is not None):
            return
        seen = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if seen is None:
            return
        self.doomed = True
        if seen.si_code == os.CLD_EXITED:
            self.code = seen.si_status
        else:
            self.signal = seen.si_status

    def end(self) -> dict[str, object]:
        """How it ended, for the notebook: by itself, or because it took too much."""
        if self.excess:
            return {"code": None, "signal": None, **self.excess}
        return {"code": self.code, "signal": self.signal, "error": None}

    def strike(self) -> None:
        """Kills its process group; reaps it once it has ended."""
        if self.reaped:
            return
        _signal(self.pid, signal.SIGKILL, group=True)
        self.look()
        if self.code is not None or self.signal is not None:
            os.waitpid(self.pid, 0)
            self.reaped = True


class Unforked(Exception):
    """A zygote did not start a worker; `asked`: it may have, and nobody knows of it."""

    def __init__(self, why: object, *, asked: bool) -> None:
        super().__init__(str(why))
        self.asked = asked


class Zygote:
    """A process that forks workers when asked, and those who wait until it is ready.

    Attributes:
        held: whether it is stopped, so that it must not be asked.
        waiting: commands to spawn, each with the worker's data socket and output pipe.
    """

    def __init__(self, pid: int, talk: socket.socket) -> None:
        self.pid = pid
        self.talk = talk
        self.ready = False
        self.held = False
        self.waiting: list[tuple[dict[str, Any], int, int]] = []

    def fork(self, command: dict[str, Any], data: int, output: int) -> int:
        """Has it start a worker, which is then a child of this process; its pid.

        Raises:
            Unforked: it could not be asked, or did not answer.
        """
        order = {name: command[name] for name in ("mode", "cwd", "scratch")}
        os.makedirs(command["scratch"], mode=0o700, exist_ok=True)
        try:
            socket.send_fds(self.talk, [json.dumps(order).encode()], [data, output])
        except OSError as error:
            raise Unforked(error, asked=False) from error
        try:
            return int(self.talk.recv(64))
        except (OSError, ValueError) as error:
            raise Unforked(f"its zygote did not answer ({error})", asked=True) from error


def _signal(pid: int, number: int, *, group: bool = False) -> bool:
    """Whether the signal could be sent (to a process that runs as another user it can't)."""
    try:
        (os.killpg if group else os.kill)(pid, number)
    except ProcessLookupError:
        pass
    except PermissionError:
        return False
    return True


class Nanny:
    """The loop: commands, the notebook's end, ended children."""

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
                _signal(pid, signal.SIGKILL)

    # ---------------------------------------------------------------------------- commands

    def _read_commands(self) -> None:
        try:
            data, descriptors, _, _ = socket.recv_fds(self._control, 65536, 16)
        except OSError:
            data, descriptors = b"", []
        self._descriptors += [_out_of_the_way(fd) for fd in descriptors]
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
            _signal(found.pid, JOB_CONTROL[how], group=True)
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
            self._begun(command, _start(command, data, output))
        except OSError as error:
            self._gone(command["id"], str(error))
        finally:
            os.close(data)
            os.close(output)

    def _begun(self, command: dict[str, Any], pid: int) -> None:
        self._workers[command["id"]] = Worker(pid, command["scratch"], command["memory_bytes"])
        self._tell(started=command["id"], pid=pid)

    def _gone(self, number: int, error: str) -> None:
        self._tell(gone=number, code=None, signal=None, error=error)

    # ---------------------------------------------------------------------------- zygotes

    def _open(self, command: dict[str, Any]) -> None:
        talk, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        data = _out_of_the_way(theirs.detach())
        nowhere = _out_of_the_way(os.open(os.devnull, os.O_RDWR))
        try:
            pid = _start(command, data, nowhere)
        except OSError as error:
            talk.close()
            self._gone(command["id"], str(error))
        else:
            talk.settimeout(FORK_S)
            self._zygotes[command["id"]] = Zygote(pid, talk)
            hear = partial(self._hear_zygote, command["id"])
            self._selector.register(talk, selectors.EVENT_READ, hear)
            self._tell(started=command["id"], pid=pid)
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
                pid = zygote.fork(command, data, output)
            except Unforked as error:
                self._lose_zygote(number, str(error), asked=error.asked)
                return
            self._begun(command, pid)
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
        _signal(zygote.pid, signal.SIGKILL, group=True)
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
            self._out_of_reach |= {pid for pid in orphans if not _signal(pid, signal.SIGKILL)}
        for pid in orphans:
            os.waitpid(pid, os.WNOHANG)
        if doomed and not self._orphans() - self._out_of_reach:
            self._report(doomed)

    def _orphans(self) -> set[int]:
        """Children that are neither workers nor zygotes: what ended workers have left."""
        ours = {worker.pid for worker in self._workers.values() if not worker.reaped}
        return children() - ours - {zygote.pid for zygote in self._zygotes.values()}

    def _report(self, doomed: dict[int, Worker]) -> None:
        for number, worker in doomed.items():
            if worker.reaped:
                del self._workers[number]
                self._tell(gone=number, **worker.end())
                shutil.rmtree(worker.scratch, ignore_errors=True)


def _start(command: dict[str, Any], data: int, output: int) -> int:
    """Starts a worker or a zygote in its own session, with nothing open but 0 to 3; its pid."""
    if "scratch" in command:
        os.makedirs(command["scratch"], mode=0o700, exist_ok=True)
    os.chdir(command["cwd"])
    try:
        return os.posix_spawnp(
            command["argv"][0],
            command["argv"],
            {**command["env"], "TRITON_MAGICS_NANNY": str(os.getpid())},
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_DUP2, output, 1),
                (os.POSIX_SPAWN_DUP2, output, 2),
                (os.POSIX_SPAWN_DUP2, data, WORKER_DATA_FD),
            ],
            setsid=True,
            setsigmask=(),
            setsigdef=(signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ, signal.SIGHUP),
        )
    finally:
        os.chdir("/")


def _out_of_the_way(fd: int) -> int:
    """The same descriptor under a number that no worker's own descriptors need; close-on-exec."""
    moved = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _LOWEST_FD)
    os.close(fd)
    return moved


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


def claim(home: str) -> int:
    """Holds the lock that says this folder is in use; the descriptor to keep open."""
    os.makedirs(home, mode=0o700, exist_ok=True)
    lock = os.open(os.path.join(home, "lock"), os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    return lock


def sweep_stale(home: str) -> None:
    """Removes what nannies that were themselves killed left beside `home`."""
    folder = os.path.dirname(home)
    for name in _listing(folder):
        path = os.path.join(folder, name)
        if path != home and _abandoned(path):
            shutil.rmtree(path, ignore_errors=True)


def _abandoned(path: str) -> bool:
    """Whether nobody holds its lock; a folder of the last minute may be about to be claimed."""
    try:
        if time.time() - os.stat(path).st_mtime < STALE_S:
            return False
        lock = os.open(os.path.join(path, "lock"), os.O_RDWR)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(lock)
    return True


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
    nanny.serve()
    os.close(lock)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
