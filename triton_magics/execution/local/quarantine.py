"""Quarantine of a GPU that does not respond: no job runs on it until it does."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from triton_magics.errors import GpuLost, WorkerError
from triton_magics.execution.job_requests import Mode
from triton_magics.execution.local.worker_process import Worker


class Quarantine:
    """Refuses jobs on a lost GPU; each job checks it again.

    Args:
        gpu_fault: returns why the GPU can't be used; called after a worker did not become ready.
    """

    def __init__(self, gpu_fault: Callable[[], str | None]) -> None:
        self._gpu_fault = gpu_fault
        self._suspected = False

    def check(self, stuck: Sequence[Worker]) -> None:
        """Check that a job can run on the GPU.

        Args:
            stuck: killed workers that are not gone.

        Raises:
            GpuLost: the reason, and the repair.
        """
        if stuck:
            pids = ", ".join(str(worker.pid) for worker in stuck)
            raise GpuLost(
                _lost_gpu_message(f"process {pids} was killed and hangs in its driver", pids)
            )
        if self._suspected and (reason := self._gpu_fault()):
            raise GpuLost(_lost_gpu_message(reason))
        self._suspected = False

    def not_ready_error(self, mode: Mode, message: str) -> WorkerError:
        """Return the error of a worker that did not become ready; `GpuLost` for a faulty GPU."""
        self._suspected = mode in ("gpu", "tools")
        reason = self._gpu_fault() if self._suspected else None
        return GpuLost(_lost_gpu_message(reason)) if reason else WorkerError(message)


def _lost_gpu_message(reason: str, pids: str = "") -> str:
    """Return the message about a quarantined GPU, with the repair."""
    inspect = f"`ps -o stat,wchan {pids.replace(',', '')}` shows where it hangs. " if pids else ""
    return (
        f"the GPU is lost: {reason}. No job runs on it until it responds; each job checks it "
        f"again. {inspect}If it does not end by itself, reset the GPU or reboot. "
        "Meanwhile: the setting device = 'interpreter'"
    )
