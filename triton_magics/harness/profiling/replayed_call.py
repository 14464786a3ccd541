"""One call of a version in a fresh process, under a tool that must start that process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from triton_magics import languages
from triton_magics.execution.job_refs import OpRef, VersionRef
from triton_magics.execution.scratch import SCRATCH
from triton_magics.model import Case, ProfiledKernel, Value

PROGRAM = "triton_magics.harness.one_call"


class ReplayRequest(Value):
    """The call to replay.

    Attributes:
        then: after a call that compiles and tunes, call it in the range of the CUDA profiler, or
            record what it runs.
        facts: path for the `CallFacts`; empty: none.
    """

    op: OpRef
    version: VersionRef
    case: Case
    then: Literal["", "profile", "record"] = ""
    facts: str = ""


class CallFacts(Value):
    """The least work of a replayed call, and the kernels that CUPTI recorded.

    Attributes:
        bytes: compulsory traffic: every tensor once.
        flops: operations; None where the op declares none.
        kernels: in the order of launch; empty unless they were recorded.
        note: why they are missing.
    """

    bytes: int | None = None
    flops: int | None = None
    kernels: tuple[ProfiledKernel, ...] = ()
    note: str | None = None


def read_facts(path: Path) -> CallFacts:
    """Return the facts that a call has written; empty ones if it has not, or they are damaged."""
    try:
        return CallFacts.model_validate_json(path.read_bytes())
    except (OSError, ValueError):
        return CallFacts()


def run_under(
    tool: Sequence[str],
    request: ReplayRequest,
    *,
    limit_s: float,
    variables: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str] | None:
    """Run a tool around the call; return None if it does not end in time.

    The supervisor kills the tool with the worker, as a descendant of it.

    Args:
        tool: its command line, without the program that it starts.
        request: the call.
        limit_s: time for all of it, seconds; then its process group is killed.
        variables: added to the environment.
    """
    pipe = subprocess.PIPE
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        file.write(request.model_dump_json())
        file.flush()
        command = [*tool, sys.executable, "-m", PROGRAM, file.name]
        with subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True,
            errors="replace", env=_environment() | dict(variables or {}), process_group=0,
        ) as process:  # fmt: skip
            try:
                out, err = process.communicate(timeout=limit_s)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)  # with its child processes
                return None
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def _environment() -> dict[str, str]:
    root = str(Path(__file__).parents[3])
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join((root, os.environ.get("PYTHONPATH", ""))),
    }
    languages.set_worker_environment("gpu", os.environ.get(SCRATCH), environment)
    return environment


__all__ = ["CallFacts", "ReplayRequest", "read_facts", "run_under"]
