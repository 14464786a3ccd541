"""The session that every verb runs in: a workspace and an executor."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

from triton_magics.config import Settings
from triton_magics.errors import Interrupted, ServerLost
from triton_magics.execution import Executor, registry
from triton_magics.model import Status
from triton_magics.session.job_manager import JobManager
from triton_magics.session.jobs import Jobs
from triton_magics.session.op_workspace import OpWorkspace

T = TypeVar("T")


class Session(OpWorkspace):
    """A workspace with its ops, the jobs that run on them, and the last result.

    Args:
        path: folder of the workspace.
        settings: the user's; read when they are needed, never changed.
        executor: runs kernels; by default that of the settings, started when first needed.
        manager: runs the jobs of another session too, and outlives this one.
        strict: overrides the setting of that name.

    Attributes:
        jobs: runs jobs of ops and versions.
        last: result of the last verb, also where it was interrupted.
    """

    def __init__(
        self,
        path: Path,
        settings: Settings,
        *,
        executor: Executor | None = None,
        manager: JobManager | None = None,
        strict: bool | None = None,
    ) -> None:
        super().__init__(path, settings, strict=strict)
        self._owns_manager = manager is None
        self.jobs = Jobs(self, manager or JobManager(executor or registry.create(settings)))
        self.last: Any = None

    def close(self) -> None:
        """End the executor's processes and close the store; a second time does nothing."""
        if self._owns_manager:
            self.jobs.close()
        super().close()

    def finish(self, result: T) -> T:
        """Keep the result of a verb as the last one, and return it.

        Raises:
            Interrupted: its job was interrupted; the error has the result.
            ServerLost: the machine that ran its job was lost; the error has the result.
        """
        self.last = result
        if lost := getattr(result, "lost", None):
            raise ServerLost(lost, result)
        if getattr(result, "status", None) is Status.INTERRUPTED:
            raise Interrupted(result)
        return result
