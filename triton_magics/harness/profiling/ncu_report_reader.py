"""Read a report of Nsight Compute in a process of its own, without torch.

NVIDIA's module reads freed memory where torch is loaded too (seen with that of 2025.3), which would
end the worker and lose the profile.

As a program it reads a `_Request` from its standard input and prints an `_Answer`.
"""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
from pathlib import Path

from triton_magics.execution.job_refs import VersionRef
from triton_magics.harness.profiling.ncu_report_file import MISSING, UNREADABLE, read_report
from triton_magics.model import ProfiledKernel, Value


class _Request(Value):
    path: str
    program: str
    version: VersionRef


class _Answer(Value):
    kernels: tuple[ProfiledKernel, ...] = ()
    reason: str | None = None


class ReportReader:
    """A process that reads one report; it imports what it needs before the report is there."""

    def __init__(self) -> None:
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", __name__], stdin=pipe, stdout=pipe,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def read(
        self, path: Path, program: str, ref: VersionRef, *, limit_s: float
    ) -> tuple[tuple[ProfiledKernel, ...], str | None]:
        """Return the kernels of a report, or why there are none.

        Args:
            path: of the report.
            program: path of ncu.
            ref: the version that was profiled.
            limit_s: time for it, seconds.
        """
        request = _Request(path=str(path), program=program, version=ref)
        try:
            out = self._process.communicate(request.model_dump_json().encode(), limit_s)[0]
        except subprocess.TimeoutExpired:
            return (), UNREADABLE.format(f"its module took more than {limit_s:g} s")
        if self._process.returncode:
            return (), UNREADABLE.format(f"its module ended {_how(self._process.returncode)}")
        answer = _Answer.model_validate_json(out)
        return answer.kernels, answer.reason

    def close(self) -> None:
        """End the process."""
        with contextlib.suppress(BrokenPipeError), self._process:  # closes the pipes and reaps it
            self._process.kill()


def _how(code: int) -> str:
    return f"by {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"


def _answer(request: _Request) -> _Answer:
    try:
        kernels = read_report(Path(request.path), request.program, request.version)
    except ImportError:
        return _Answer(reason=MISSING)
    except ValueError as error:
        return _Answer(reason=UNREADABLE.format(error))
    return _Answer(
        kernels=kernels, reason=None if kernels else UNREADABLE.format("it has no kernel")
    )


if __name__ == "__main__":
    answer = _answer(_Request.model_validate_json(sys.stdin.buffer.read()))
    sys.stdout.write(answer.model_dump_json())
