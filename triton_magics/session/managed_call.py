"""A verb that runs beside its caller: queued, running, ended; its events and its value."""

from __future__ import annotations

import contextvars
import threading
import time
import uuid
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass
from typing import Any, Literal

from triton_magics.execution import JobHandle
from triton_magics.execution.protocol import Progress

State = Literal["queued", "running", "done", "failed", "cancelled"]


@dataclass(frozen=True)
class CallEvent:
    """One event of a call: a change of its state or place, a new job, a step, or printed text.

    Attributes:
        job: kind of the job that begins: `validate`.
    """

    state: State
    position: int = 0
    job: str = ""
    progress: Progress | None = None
    output: str = ""


class ManagedCall:
    """A verb that runs beside its caller.

    Attributes:
        id: for `JobManager.cancel`.
        title: `bench softmax`.
        owner: owners take turns.
        device: id of the device that it runs on; None before, and for the default one.
        state: `queued`, `running`, `done`, `failed` (it raised), `cancelled`.
        position: how many calls are before it.
        queued_at, started_at, ended_at: by `time.time()`, seconds; None: not yet.
    """

    def __init__(
        self,
        title: str,
        call: Callable[[], Any],
        on_event: Callable[[CallEvent], None] | None,
        *,
        owner: str = "",
    ) -> None:
        self.id = uuid.uuid4().hex
        self.title = title
        self.owner = owner
        self.device: str | None = None
        self.state: State = "queued"
        self.position = 0
        self.queued_at = time.time()
        self.started_at: float | None = None
        self.ended_at: float | None = None
        self.is_cancelled = False
        self._call = call
        self._future: Future[Any] = Future()
        self._listeners = [on_event] if on_event else []
        self._context = contextvars.copy_context()  # its output goes to the cell that started it
        self._lock = threading.RLock()
        self._handle: JobHandle | None = None

    def __repr__(self) -> str:
        """Return `<bench softmax: running>`."""
        return f"<{self.title}: {self.state}>"

    def subscribe(self, listener: Callable[[CallEvent], None]) -> None:
        """Call a listener with the state as it is, and with every event from now on."""
        self._listeners.append(listener)
        listener(CallEvent(self.state, self.position))

    def result(self, timeout_s: float | None = None) -> Any:
        """Wait for the value.

        Raises:
            TimeoutError: there is none yet; the call goes on.
            CancelledError: it was cancelled.
            Exception: what the call raised.
        """
        return self._future.result(timeout_s)

    @property
    def has_ended(self) -> bool:
        """Return True once there is a value, an error, or a cancel that was carried out."""
        return self._future.done()

    # --------------------------------------------------------------------------- of the manager

    def move_to(self, position: int) -> None:
        """Set how many calls are before it, while it waits."""
        if position != self.position and self.state == "queued":
            self.position = position
            self._send(CallEvent("queued", position))

    def stop(self) -> bool:
        """End it if it runs, keep it from running if it waits; False if it has ended already."""
        with self._lock:
            if self._future.done():
                return False
            self.is_cancelled = True
            if self.state == "queued":
                self._end(
                    "cancelled", CancelledError(f"{self.title} was cancelled before it began")
                )
            elif self._handle:
                self._handle.cancel()
            return True

    def attach(self, handle: JobHandle | None) -> None:
        """Note the executor's job that it waits for; end that if the call is cancelled."""
        with self._lock:
            self._handle = handle
            if handle and self.is_cancelled:
                handle.cancel()

    def run(self) -> None:
        """Run it in this thread, unless it was cancelled."""
        with self._lock:
            if self.state != "queued":
                return
            self.state, self.started_at, self.position = "running", time.time(), 0
        self._context.run(self._run)

    def _run(self) -> None:
        self.emit()
        try:
            value = self._call()
        except (KeyboardInterrupt, CancelledError):
            self._end("cancelled", CancelledError(f"{self.title} was stopped"))
        except BaseException as error:  # noqa: BLE001 (raised by `result`)
            self._end("failed", error)
        else:
            self._end("done", value)

    def _end(self, state: State, value: Any) -> None:
        self.state, self.ended_at = state, time.time()
        if isinstance(value, BaseException):
            self._future.set_exception(value)
        else:
            self._future.set_result(value)
        self.emit()

    def emit(self, *, job: str = "", progress: Progress | None = None, output: str = "") -> None:
        """Send the subscribers an event: a change, a job, a step or printed text."""
        self._send(CallEvent(self.state, self.position, job, progress, output))

    def _send(self, event: CallEvent) -> None:
        for listener in tuple(self._listeners):
            listener(event)
