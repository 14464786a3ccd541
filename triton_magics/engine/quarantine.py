"""A GPU that does not come back is in quarantine: no job runs on it, and it is said what helps."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from triton_magics.engine.process import Worker
from triton_magics.engine.protocol import Mode
from triton_magics.errors import GpuLost, WorkerError


class Quarantine:
    """Keeps jobs from a lost GPU, for as long as it is lost; it is looked at with each job.

    Args:
        ailment: what keeps the GPU from coming back; asked where a worker did not get ready.
    """

    def __init__(self, ailment: Callable[[], str | None]) -> None:
        self._ailment = ailment
        self._suspected = False

    def check(self, stuck: Sequence[Worker]) -> None:
        """Whether a job may run on the GPU.

        Args:
            stuck: its workers that were killed and are not gone.

        Raises:
            GpuLost: why not, and what mends it.
        """
        if stuck:
            pids = ", ".join(str(worker.pid) for worker in stuck)
            raise GpuLost(_lost(f"process {pids} was killed and hangs in its driver", pids))
        if self._suspected and (reason := self._ailment()):
            raise GpuLost(_lost(reason))
        self._suspected = False

    def not_ready(self, mode: Mode, why: str) -> WorkerError:
        """The error of a worker that did not get ready, which is the GPU's if that is ill."""
        self._suspected = mode == "gpu"
        reason = self._ailment() if self._suspected else None
        return GpuLost(_lost(reason)) if reason else WorkerError(why)


def _lost(reason: str, pids: str = "") -> str:
    """What a user reads of a GPU that is in quarantine, and how it ends."""
    gone = f"`ps -o stat,wchan {pids.replace(',', '')}` shows where it hangs; " if pids else ""
    return (
        f"the GPU is lost: {reason}. Nothing is run on it until then; it is looked at again with "
        f"each job, so there is nothing to lift by hand. {gone}if it does not end by itself, reset "
        "the GPU or reboot. Meanwhile: %config TritonMagics.device = 'interpreter'"
    )
