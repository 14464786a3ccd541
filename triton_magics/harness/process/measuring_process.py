"""The process that measures a GPU's peak rates for a worker in a sandbox.

A child that the worker starts in its sandbox may not read its own /proc/<pid>, and without that
cuInit fails. So this process is forked before the worker enters its sandbox. It waits for one
order, becomes a new Python, measures and ends. It runs no version, and reads nothing that a version
in the sandbox can write: neither the worker's temporary files nor its compiled kernels.
"""

from __future__ import annotations

import faulthandler
import os
import re
import shutil
import signal
import socket
import sys
import time
from pathlib import Path
from typing import NoReturn

from triton_magics.config import CEILINGS, cache_dir
from triton_magics.execution import sandbox
from triton_magics.execution.scratch import SCRATCH, TEMPORARY
from triton_magics.harness.process import parent_watch
from triton_magics.harness.process.driver_version import driver_version
from triton_magics.harness.process.forked_call import MAX_DESCRIPTORS

MODULE = "triton_magics.harness.timing.peak_rates"
FORMAT = 5  # increase it when a timer calls the tiny kernels differently
DEVICES = Path("/dev")
PATH_BYTES = 4096
CHUNK_BYTES = 2**16
MAX_ERROR_CHARS = 2000


class MeasuringProcess:
    """The worker's end; the process takes one order.

    Attributes:
        pid: of the process.
    """

    def __init__(self, channel: socket.socket, pid: int) -> None:
        self.pid = pid
        self._channel = channel

    def measure(self, path: Path, within_s: float) -> str:
        """Have the peak rates written to a file, and end the process.

        Returns:
            What it printed as an error: its end; or that it took too long.
        """
        try:
            self._channel.send(os.fsencode(path))
            return self._read_error(time.monotonic() + within_s)
        except TimeoutError:
            return f"not finished after {within_s:g} s"
        except OSError as lost:
            return f"the measuring process was killed: {lost.strerror}"
        finally:
            self.end()
            shutil.rmtree(_folder(path), ignore_errors=True)

    def _read_error(self, deadline_s: float) -> str:
        """Read until the process ends.

        Raises:
            TimeoutError: it has not ended by the deadline.
        """
        error = b""
        while True:
            self._channel.settimeout(max(0.001, deadline_s - time.monotonic()))
            chunk = self._channel.recv(CHUNK_BYTES)
            if not chunk:
                return error.decode(errors="replace")[-MAX_ERROR_CHARS:]
            error = (error + chunk)[-4 * MAX_ERROR_CHARS :]  # a character has up to four bytes

    def end(self) -> None:
        """Kill the process and reap it."""
        self._channel.close()
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


_processes: list[MeasuringProcess] = []  # at most one


def start_if_needed() -> None:
    """Fork the process where this one will enter a sandbox and a GPU's peak rates are unknown.

    Call it after the fork of the subject process, which then has no channel to it.
    """
    if os.environ.get(sandbox.VARIABLE) and _is_needed():
        _processes.append(_start())


def pid() -> int | None:
    """Return the pid of the process that waits; None without one."""
    return _processes[0].pid if _processes else None


def take() -> MeasuringProcess | None:
    """Return the process that waits, once; None without one."""
    return _processes.pop() if _processes else None


def end() -> None:
    """End the process that waits, if there is one: the peak rates are known."""
    if process := take():
        process.end()


def file_of(gpu_uuid: str | None, driver: str | None) -> Path:
    """Return the file of a GPU's peak rates."""
    return cache_dir() / CEILINGS / f"{_plain(str(gpu_uuid))}{_ending(driver)}"


def command(path: Path) -> list[str]:
    """Return the command that measures; `-P`: the working folder's modules can't shadow ours."""
    return [sys.executable, "-P", "-m", MODULE, str(path)]


def _is_needed() -> bool:
    """Return whether a GPU of this machine may have no file, without asking its driver."""
    ending = _ending(driver_version())
    files = [name for name in _names(cache_dir() / CEILINGS) if name.endswith(ending)]
    gpus = [name for name in _names(DEVICES) if re.fullmatch(r"nvidia\d+", name)]
    return len(files) < max(1, len(gpus))


def _names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _ending(driver: str | None) -> str:
    return f"-{_plain(str(driver))}-{FORMAT}.json"


def _plain(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9.-]+", "_", text)


# ----------------------------------------------------------------------------- the process


def _start() -> MeasuringProcess:
    ours, theirs = socket.socketpair()
    parent = os.getpid()
    if child := os.fork():
        theirs.close()
        return MeasuringProcess(ours, child)
    try:
        parent_watch.die_with(parent)
        isolate(theirs)
        if order := os.read(0, PATH_BYTES):
            _measure(Path(os.fsdecode(order)))
    finally:
        os._exit(0)


def isolate(channel: socket.socket) -> None:
    """Keep only the channel, as standard input, and silence the output."""
    faulthandler.unregister(signal.SIGURG)  # the stack dump file belongs to the worker
    os.dup2(channel.fileno(), 0)
    devnull = os.open(os.devnull, os.O_RDWR)
    for fd in (1, 2):
        os.dup2(devnull, fd)
    os.closerange(3, MAX_DESCRIPTORS)


def _measure(path: Path) -> NoReturn:
    """Become a Python that measures; what it prints as an error goes into the channel."""
    os.dup2(0, 2)
    os.dup2(1, 0)
    folder = _folder(path)
    try:
        shutil.rmtree(folder, ignore_errors=True)
        (folder / TEMPORARY).mkdir(parents=True)
        os.execve(sys.executable, command(path), _environment(folder))  # noqa: S606 (no shell)
    except OSError as error:
        os.write(2, str(error).encode())
        os._exit(1)


def _folder(path: Path) -> Path:
    """Return the folder for the temporary files and compiled kernels of a measurement."""
    return path.with_suffix(".measuring")


def _environment(folder: Path) -> dict[str, str]:
    """Return the environment, with this folder in place of the worker's own.

    A version writes into the worker's: what is compiled there would run outside the sandbox.
    """
    own = {SCRATCH: str(folder), "TMPDIR": str(folder / TEMPORARY)}
    worker = os.environ.get(SCRATCH)
    if not worker:
        return {**os.environ, **own}
    return {name: text.replace(worker, str(folder)) for name, text in os.environ.items()} | own


__all__ = ["FORMAT", "command", "end", "file_of", "isolate", "pid", "start_if_needed", "take"]
