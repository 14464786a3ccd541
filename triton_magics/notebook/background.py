"""`--bg`: calls that run beside the notebook, one after the other, each with a handle."""

from __future__ import annotations

import atexit
import contextvars
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import CancelledError, Future
from typing import Any, Literal, Protocol

from triton_magics.errors import TritonMagicsError
from triton_magics.notebook import tracebacks
from triton_magics.notebook.display import bundle, picture, said
from triton_magics.notebook.jobs import Step
from triton_magics.notebook.progress import ProgressLine

CLOSE_S = 10.0
JobStatus = Literal["queued", "running", "done", "failed", "cancelled"]
Faces = Mapping[str, str]


class Slot(Protocol):
    """Where a job is shown: a place whose content changes, and what comes after it.

    Attributes:
        pictures: whether it can show any.
    """

    pictures: bool

    def put(self, faces: Faces) -> None:
        """What is known now, in place of what was there."""

    def end(self, faces: Faces) -> None:
        """What came of it, in place of what was there."""

    def add(self, faces: Faces) -> None:
        """Something to stand below it."""


class Call(Protocol):
    """What a job does."""

    def __call__(self, *, hear: Callable[[Step], None], say: Callable[[str], None]) -> Any:
        """The value; `hear` is told each step, `say` what a kernel prints."""


class Job:
    """A call that runs beside the notebook; its output shows how far it is, then its value.

    Attributes:
        title: `bench softmax`.
    """

    def __init__(
        self,
        title: str,
        call: Call,
        *,
        stop: Callable[[int], object],
        passes: Callable[[Any], bool],
    ) -> None:
        """Makes a job that waits for its turn.

        Args:
            title: what it does.
            call: does it.
            stop: interrupts the job of a thread.
            passes: whether a value may be given; else it is a failure.
        """
        self.title = title
        self._call, self._stop, self._passes = call, stop, passes
        self._slots: list[Slot] = []
        self._future: Future[Any] = Future()
        self._thread: int | None = None
        self._unwanted = False
        self._faces: Faces = _text(f"{title} · queued")
        self._context = contextvars.copy_context()  # what it prints goes to the cell that asked

    def __repr__(self) -> str:
        """`<bench softmax: running>`."""
        return f"<{self.title}: {self.status}>"

    @property
    def status(self) -> JobStatus:
        """`queued`, `running`; `done`, `failed` (an error, or a verdict), `cancelled`."""
        if not self._future.done():
            return "running" if self._future.running() else "queued"
        if self._future.cancelled():
            return "cancelled"
        error = self._future.exception()
        if error is None:
            return "done"
        return "cancelled" if isinstance(error, CancelledError) else "failed"

    def result(self, timeout: float | None = None) -> Any:
        """The value, as soon as there is one.

        Args:
            timeout: seconds to wait; None: as long as it takes.

        Raises:
            TimeoutError: there is none yet; the job goes on.
            CancelledError: it was cancelled, or interrupted from elsewhere.
            KernelFailure: a verdict that is not `passed`, unless `--no-raise`; it has the value.
            TritonMagicsError: what the call itself raised.
        """
        if self._future.cancelled():
            raise CancelledError(f"{self.title} was cancelled before it began")
        return self._future.result(timeout)

    def cancel(self) -> bool:
        """Stops it, or takes it out of the queue; False: it has ended already."""
        if self._future.cancel():
            self._end(_text(f"{self.title} · cancelled before it began"))
            return True
        self._unwanted = True
        if self._thread is not None:
            self._stop(self._thread)
        return not self._future.done()

    # ------------------------------------------------------------------------------- showing

    def show(self, slot: Slot) -> None:
        """Shows it there too, from now on."""
        self._slots.append(slot)
        slot.put(self._faces)

    def waits_for(self, others: int) -> None:
        """Tells how many are before it."""
        before = "the job before it" if others == 1 else f"{others} jobs before it"
        self._put(_text(f"{self.title} · queued, waits for {before}"))

    def _put(self, faces: Faces) -> None:
        self._faces = faces
        for slot in self._slots:
            slot.put(faces)

    def _end(self, faces: Faces, value: Any = None) -> None:
        self._faces = faces
        for slot in self._slots:
            slot.end(faces)
            if slot.pictures and (drawn := picture(value)):
                slot.add(drawn)

    # ------------------------------------------------------------------------------- running

    def run(self) -> None:
        """Does it, in the thread that calls; nothing if it was cancelled."""
        if self._future.set_running_or_notify_cancel():
            self._context.run(self._run)

    def _run(self) -> None:
        self._thread = threading.get_ident()
        try:
            with ProgressLine(self.title, self._progress, patience_s=0) as line:
                value = self._call(hear=lambda step: self._heard(line, step), say=_print)
        except KeyboardInterrupt:
            self._fail(CancelledError(f"{self.title} was stopped"), f"{self.title} · cancelled")
        except TritonMagicsError as error:
            told = f"{type(error).__name__}: {error}"
            self._fail(tracebacks.explained(error), told)
        except BaseException as error:  # noqa: BLE001 (whatever it is, it is for who asks)
            self._fail(error, f"{type(error).__name__}: {error}")
        else:
            self._deliver(value)
        finally:
            self._thread = None

    def _heard(self, line: ProgressLine, step: Step) -> None:
        line.tell(step)
        if self._unwanted:  # it was cancelled while it waited for the engine
            self._stop(threading.get_ident())

    def _progress(self, text: str, *, last: bool) -> None:
        if not last:
            self._put(_text(text))

    def _fail(self, error: BaseException, words: str) -> None:
        stopped = isinstance(error, CancelledError)
        self._end(said(words, status="warn" if stopped else "bad"))
        self._future.set_exception(error)

    def _deliver(self, value: Any) -> None:
        self._end(bundle(value), value)
        if getattr(value, "status", None) == "interrupted":
            self._future.set_exception(CancelledError(f"{self.title} was stopped"))
        elif self._passes(value):
            self._future.set_result(value)
        else:
            self._future.set_exception(tracebacks.failure(value))


class Queue:
    """Runs jobs one after the other, in a thread that ends with the process."""

    def __init__(self) -> None:
        self._turn = threading.Condition()
        self._waiting: deque[Job] = deque()
        self._running: Job | None = None
        self._thread: threading.Thread | None = None

    def add(self, job: Job) -> None:
        """Takes a job; it runs once all before it have ended."""
        with self._turn:
            self._waiting.append(job)
            if self._thread is None:
                atexit.register(self.close)  # before the engine ends under the job that runs
                self._thread = threading.Thread(
                    target=self._work, name="triton-background", daemon=True
                )
                self._thread.start()
            self._turn.notify()
            self._tell()

    def close(self) -> None:
        """Cancels all, and waits until the one that runs has ended; it may be used again."""
        atexit.unregister(self.close)
        with self._turn:
            jobs = [*self._waiting, *([self._running] if self._running else [])]
            self._waiting.clear()
            thread, self._thread = self._thread, None
            self._turn.notify()
        for job in jobs:
            job.cancel()
        if thread is not None and thread is not threading.current_thread():
            thread.join(CLOSE_S)

    def _tell(self) -> None:
        ahead = int(self._running is not None)
        for i, job in enumerate(self._waiting):
            if job.status == "queued" and i + ahead:
                job.waits_for(i + ahead)

    def _work(self) -> None:
        for job in self._turns():
            job.run()

    def _turns(self) -> Iterator[Job]:
        """Each job when it is its turn, until another thread has taken over or all is closed."""
        while True:
            with self._turn:
                self._running = None
                self._turn.wait_for(lambda: self._waiting or not self._mine())
                if not self._mine():
                    return
                job = self._running = self._waiting.popleft()
                self._tell()
            yield job

    def _mine(self) -> bool:
        return self._thread is threading.current_thread()


class InPlace:
    """A slot in a cell's output, which changes there, long after the cell has ended."""

    pictures = True

    def __init__(self) -> None:
        self._handle: Any = None

    def put(self, faces: Faces) -> None:
        """Shows it in place of what was there."""
        from IPython.display import display

        if self._handle is None:
            self._handle = display(dict(faces), raw=True, display_id=True)
        else:
            self._handle.update(dict(faces), raw=True)

    end = put

    def add(self, faces: Faces) -> None:
        """Shows it below."""
        from IPython.display import display

        display(dict(faces), raw=True, display_id=True)


class Printed:
    """A slot of a terminal, where nothing changes that was printed: what came of it, at the end."""

    pictures = False

    def put(self, faces: Faces) -> None:
        """Prints nothing yet."""

    def end(self, faces: Faces) -> None:
        """Prints what came of it."""
        _print(f"\n{faces['text/plain']}\n")

    def add(self, faces: Faces) -> None:
        """A terminal shows no pictures."""


def _text(words: str) -> dict[str, str]:
    return {"text/plain": words}


def _print(text: str) -> None:
    print(text, end="", flush=True)  # noqa: T201 (sys.stdout as it is when it is printed)
