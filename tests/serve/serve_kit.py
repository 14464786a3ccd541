"""Helpers of the server's tests: a service over a scripted executor."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.fake_executor import FakeExecutor
from triton_magics import verbs
from triton_magics.config import Settings
from triton_magics.lab import Lab
from triton_magics.serve.job_model import Caller
from triton_magics.serve.job_service import JobService
from triton_magics.serve.options import ServeOptions
from triton_magics.serve.served_job import ServedJob

SOURCE = "import triton\n\n\ndef triton_softmax(x):\n    return x  # {}\n"
ANN, BEN = Caller("ann"), Caller("ben")


@contextmanager
def opened(path: Path, engine: FakeExecutor, **options: Any) -> Iterator[JobService]:
    """Give a service with softmax v1 written."""
    path.mkdir(parents=True, exist_ok=True)
    service = JobService(Lab(path, executor=engine, settings=Settings()), ServeOptions(**options))
    try:
        service.lab.kernel("softmax", "v1", SOURCE.format("v1"))
        yield service
    finally:
        service.close()


def submit(
    service: JobService, verb: str = "validate", caller: Caller = ANN, **arguments: Any
) -> ServedJob:
    """Submit a verb, by default the validation of softmax v1."""
    arguments = arguments or {"op": "softmax", "version": "v1"}
    loaded = verbs.load(verb)
    return service.submit(loaded, loaded.request.checked(arguments), caller)


class Gate:
    """Holds the jobs of an executor until it is opened, or the job is cancelled."""

    def __init__(self, engine: FakeExecutor) -> None:
        import threading

        from triton_magics.execution import Outcome

        self.entered = threading.Event()
        self._open = threading.Event()
        self._cancelled = threading.Event()
        run = engine.run

        def hold(job: Any, **more: Any) -> Outcome:
            self.entered.set()
            self._open.wait(60)
            if self._cancelled.is_set():
                self._cancelled.clear()
                return Outcome(status="interrupted")
            return run(job, **more)

        def cancel() -> None:
            self._cancelled.set()
            self._open.set()

        engine.run = hold  # type: ignore[method-assign]
        engine.on_cancel = cancel

    def open(self) -> None:
        self._open.set()
