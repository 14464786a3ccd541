"""Show the background jobs of `--bg`; the job manager runs them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import CancelledError
from typing import TYPE_CHECKING, Any, Protocol

from triton_magics.errors import TritonMagicsError
from triton_magics.notebook import tracebacks
from triton_magics.notebook.display import bundle, message_bundle, picture
from triton_magics.notebook.job_progress import Step
from triton_magics.notebook.progress import ProgressLine

if TYPE_CHECKING:
    from triton_magics.session.job_manager import JobManager
    from triton_magics.session.managed_call import CallEvent, ManagedCall, State

MimeBundle = Mapping[str, str]


class JobOutput(Protocol):
    """An output that shows a job and changes with it.

    Attributes:
        shows_pictures: False for a terminal.
    """

    shows_pictures: bool

    def update(self, mime_bundle: MimeBundle) -> None:
        """Replace the content by the present state."""

    def finish(self, mime_bundle: MimeBundle) -> None:
        """Replace the content by the result."""

    def append(self, mime_bundle: MimeBundle) -> None:
        """Show a picture below the content."""


class Job:
    """A call in the background; its output shows its progress, then its value.

    Attributes:
        title: `bench softmax`.
    """

    def __init__(self, title: str, *, passes: Callable[[Any], bool]) -> None:
        """Make a job that is not queued yet.

        Args:
            title: text that names it: `bench softmax`.
            passes: returns False for a value that `result` raises as a failure.
        """
        self.title = title
        self._passes = passes
        self._outputs: list[JobOutput] = []
        self._managed: ManagedCall | None = None
        self._bundle: MimeBundle = _text(f"{title} · queued")

    def start(self, jobs: JobManager, call: Callable[[Callable[[Step], None]], Any]) -> None:
        """Queue the call; its argument is a listener of its steps."""
        self._managed = jobs.submit(self.title, lambda: self._run(call), on_event=self._on_event)

    def __repr__(self) -> str:
        """Return `<bench softmax: running>`."""
        return f"<{self.title}: {self.status}>"

    @property
    def status(self) -> State:
        """Return `queued`, `running`, `done`, `failed` (error or verdict) or `cancelled`."""
        return self._managed.state if self._managed else "queued"

    def result(self, timeout: float | None = None) -> Any:
        """Wait for the value and return it.

        Args:
            timeout: seconds to wait; None: no limit.

        Raises:
            TimeoutError: the job has not ended; it continues.
            CancelledError: the job was cancelled or interrupted.
            KernelFailure: the verdict is not `passed`, and no `--no-raise`; has the value.
            TritonMagicsError: the error of the call.
        """
        assert self._managed is not None, "not queued yet"
        try:
            return self._managed.result(timeout)
        except CancelledError as error:
            raise tracebacks.set_lines(error, [f"CancelledError: {error}"]) from None
        except TimeoutError as error:
            lines = [f"TimeoutError: {self.title} has not ended in {timeout:g} s; it continues"]
            raise tracebacks.set_lines(error, lines) from None

    def cancel(self) -> bool:
        """Stop the job, or remove it from the queue; return False if it has ended already."""
        return self._managed is not None and self._managed.stop()

    # ------------------------------------------------------------------------------- showing

    def show(self, output: JobOutput) -> None:
        """Show the job in one more output."""
        self._outputs.append(output)
        output.update(self._bundle)

    def _on_event(self, event: CallEvent) -> None:
        """Show the place in the queue, or a cancellation in the queue."""
        if event.state == "queued" and event.position:
            ahead = "1 job" if event.position == 1 else f"{event.position} jobs"
            self._update_outputs(_text(f"{self.title} · queued, waits for {ahead}"))
        elif event.state == "cancelled" and not self._has_started:
            self._finish_outputs(_text(f"{self.title} · cancelled before it started"))

    @property
    def _has_started(self) -> bool:
        return self._managed is not None and self._managed.started_at is not None

    def _update_outputs(self, mime_bundle: MimeBundle) -> None:
        self._bundle = mime_bundle
        for output in self._outputs:
            output.update(mime_bundle)

    def _finish_outputs(self, mime_bundle: MimeBundle, value: Any = None) -> None:
        self._bundle = mime_bundle
        for output in self._outputs:
            output.finish(mime_bundle)
            if output.shows_pictures and (picture_bundle := picture(value)):
                output.append(picture_bundle)

    # ------------------------------------------------------------------------------- running

    def _run(self, call: Callable[[Callable[[Step], None]], Any]) -> Any:
        """Show and return the value of the call; raise a failed verdict."""
        try:
            with ProgressLine(self.title, self._progress, delay_s=0) as line:
                value = call(line.update)
        except KeyboardInterrupt:
            self._finish_outputs(message_bundle(f"{self.title} · cancelled", status="warn"))
            raise
        except TritonMagicsError as error:
            self._finish_outputs(message_bundle(f"{type(error).__name__}: {error}", status="bad"))
            raise tracebacks.explain_error(error) from None
        except BaseException as error:
            self._finish_outputs(message_bundle(f"{type(error).__name__}: {error}", status="bad"))
            raise
        self._finish_outputs(bundle(value), value)
        if getattr(value, "status", None) == "interrupted":
            raise CancelledError
        if not self._passes(value):
            raise tracebacks.kernel_failure(value)
        return value

    def _progress(self, text: str, *, is_final: bool) -> None:
        if not is_final:
            self._update_outputs(_text(text))


class CellOutput:
    """An output of a cell, which is updated after the cell has ended."""

    shows_pictures = True

    def __init__(self) -> None:
        self._handle: Any = None

    def update(self, mime_bundle: MimeBundle) -> None:
        """Replace the content."""
        from IPython.display import display

        if self._handle is None:
            self._handle = display(dict(mime_bundle), raw=True, display_id=True)
        else:
            self._handle.update(dict(mime_bundle), raw=True)

    finish = update

    def append(self, mime_bundle: MimeBundle) -> None:
        """Show a picture below the content."""
        from IPython.display import display

        display(dict(mime_bundle), raw=True, display_id=True)


class TerminalOutput:
    """The output of a terminal, which prints the result only."""

    shows_pictures = False

    def update(self, mime_bundle: MimeBundle) -> None:
        """Print nothing: a terminal cannot change printed text."""

    def finish(self, mime_bundle: MimeBundle) -> None:
        """Print the result."""
        _print(f"\n{mime_bundle['text/plain']}\n")

    def append(self, mime_bundle: MimeBundle) -> None:
        """Print nothing: a terminal shows no pictures."""


def _text(text: str) -> dict[str, str]:
    return {"text/plain": text}


def _print(text: str) -> None:
    print(text, end="", flush=True)  # noqa: T201 (to the sys.stdout of this moment)
