"""The process of a replayed call: under a tool that starts it, or forked from this one."""

from __future__ import annotations

import contextlib
import importlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from triton_magics import languages
from triton_magics.execution.scratch import SCRATCH
from triton_magics.harness.process.forked_call import run_in_fork
from triton_magics.harness.profiling.replayed_call import PROGRAM, WORKER, ReplayRequest

POLL_S = 0.005


class WaitingCall:
    """A process under a tool that has imported what a call needs, and waits for its request.

    It creates no CUDA context before the request. It ends by itself if none comes (see
    `replayed_call.read_request`). The supervisor kills it with the worker, as a descendant of it.

    Attributes:
        folder: for files of the tool; `close` removes it.
    """

    def __init__(
        self,
        tool: Callable[[Path], Sequence[str]],
        *,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        """Start the process.

        Args:
            tool: returns the tool's command line, without the program that it starts; its argument
                is the folder.
            variables: added to the environment.
        """
        self.folder = Path(tempfile.mkdtemp(prefix="call-"))
        self._path = self.folder / "request"
        os.mkfifo(self._path)
        pipe = subprocess.PIPE
        command = [*tool(self.folder), sys.executable, "-P", "-m", PROGRAM, str(self._path)]
        own = {"TMPDIR": str(self.folder), WORKER: str(os.getpid())}
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True,
            errors="replace", env=_environment() | own | dict(variables or {}), process_group=0,
        )  # fmt: skip

    @property
    def has_ended(self) -> bool:
        """True if it can take no request any more."""
        return self._process.poll() is not None

    def run(
        self, request: ReplayRequest, *, limit_s: float
    ) -> subprocess.CompletedProcess[str] | None:
        """Send the request; return the ended tool, or None if it does not end in time.

        Args:
            request: the call.
            limit_s: time for all of it, seconds.
        """
        until = time.monotonic() + limit_s
        if not self._send(request.model_dump_json().encode(), until):
            return None
        try:
            out, err = self._process.communicate(timeout=max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            return None
        return subprocess.CompletedProcess(self._process.args, self._process.returncode, out, err)

    def _send(self, data: bytes, until: float) -> bool:
        """Write the request once the process reads; return False if it does not in time.

        True, too, if the process has ended: its output says why.
        """
        while not self.has_ended:
            try:
                fd = os.open(self._path, os.O_WRONLY | os.O_NONBLOCK)
            except OSError:  # ENXIO: it does not read yet
                if time.monotonic() > until:
                    return False
                time.sleep(POLL_S)
                continue
            os.set_blocking(fd, True)
            with contextlib.suppress(BrokenPipeError), open(fd, "wb") as fifo:
                fifo.write(data)
            return True
        return True

    def close(self) -> None:
        """Kill its process group, and remove its folder."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)  # with the tool's own child processes
        with self._process:  # closes the pipes and reaps it
            self._process.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


def run_under(
    tool: Sequence[str],
    request: ReplayRequest,
    *,
    limit_s: float,
    variables: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str] | None:
    """Run a tool around the call; return None if it does not end in time.

    Args:
        tool: its command line, without the program that it starts.
        request: the call.
        limit_s: time for all of it, seconds; then its process group is killed.
        variables: added to the environment.
    """
    call = WaitingCall(lambda _: tool, variables=variables)
    with contextlib.closing(call):
        return call.run(request, limit_s=limit_s)


def run_forked(request: ReplayRequest, *, limit_s: float) -> str | None:
    """Make the call in a fork of this process; return its output, None if it takes longer.

    This process has imported torch and has no CUDA context.

    Args:
        request: the call.
        limit_s: time for it, seconds; then its process group is killed.
    """
    with tempfile.TemporaryDirectory(prefix="call-") as folder:
        path, output = Path(folder, "request"), Path(folder, "output")
        path.write_text(request.model_dump_json())
        act = partial(importlib.import_module(PROGRAM).main, str(path))
        ended = run_in_fork(act, output, limit_s)
        return output.read_text(errors="replace") if ended else None


def _environment() -> dict[str, str]:
    root = str(Path(__file__).parents[3])
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH")))),
    }
    languages.set_worker_environment("gpu", os.environ.get(SCRATCH), environment)
    return environment


__all__ = ["WaitingCall", "run_forked", "run_under"]
