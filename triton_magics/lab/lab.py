"""One method per verb. A front end parses, calls one of these, and shows the value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self

from triton_magics.config import Settings
from triton_magics.engine import Engine
from triton_magics.engine.protocol import Progress
from triton_magics.lab import several
from triton_magics.lab.desk import Desk
from triton_magics.lab.jobs import Jobs
from triton_magics.lab.ops import Ops
from triton_magics.lab.record import Record
from triton_magics.lab.standing import Standing
from triton_magics.lab.sweeps import Sweeps
from triton_magics.lab.verdicts import Verdicts
from triton_magics.lab.works import Work
from triton_magics.model import Report, Value


class Lab(Ops, Sweeps, Verdicts, Standing, Record):
    """A workspace, an engine and the rules between them.

    Args:
        path: folder of kernels/ and logs/; by default the one of the settings, else this one.
        strict: a step that the workflow does not allow is an error; else a note.
        settings: what the user set; by default what pyproject.toml and the environment say.
        engine: what runs kernels; by default one of its own, started when first needed.

    Attributes:
        last: the value of the last verb, also where it was interrupted or raised.
        on_progress: told every step of a job; each thread has its own.
        on_output: told what a kernel prints, as it prints it; each thread has its own.
        on_change: each is called with an op's name after something was recorded of it.
    """

    def __init__(
        self,
        path: str | Path | None = None,
        *,
        strict: bool | None = None,
        settings: Settings | None = None,
        engine: Engine | None = None,
    ) -> None:
        self.settings = settings or Settings.found(path)
        if strict is not None:
            self.settings.strict = strict
        self.last: Value | None = None
        folder = Path(path or self.settings.workspace or ".").expanduser().resolve()
        self._desk = Desk(folder, self.settings)
        self._jobs = Jobs(self._desk, engine or Engine(self.settings))

    @property
    def path(self) -> Path:
        """The workspace's folder, absolute."""
        return self._desk.path

    @property
    def on_progress(self) -> Callable[[Progress], None] | None:
        """Told every step of a job of this thread."""
        return self._jobs.listeners.on_progress

    @on_progress.setter
    def on_progress(self, listener: Callable[[Progress], None] | None) -> None:
        self._jobs.listeners.on_progress = listener

    @property
    def doing(self) -> str:
        """The newest job of this thread: `validate softmax v2_tiling`."""
        return self._jobs.listeners.doing

    @property
    def on_output(self) -> Callable[[str], None] | None:
        """Told what a kernel prints, as it prints it, in a job of this thread."""
        return self._jobs.listeners.on_output

    @on_output.setter
    def on_output(self, listener: Callable[[str], None] | None) -> None:
        self._jobs.listeners.on_output = listener

    @property
    def on_change(self) -> list[Callable[[str], None]]:
        """Each is called with an op's name after something was recorded of it."""
        return self._desk.on_change

    @property
    def on_work(self) -> list[Callable[[tuple[Work, ...]], None]]:
        """Each is told the jobs under way, in whatever thread, whenever they change."""
        return self._jobs.works.watchers

    @property
    def works(self) -> tuple[Work, ...]:
        """The jobs under way: the first runs, the others wait for it."""
        return self._jobs.works.all

    def close(self) -> None:
        """Ends the engine's processes and closes the store; a second time does nothing."""
        self._jobs.close()
        self._desk.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def take(self, ops: Sequence[str] = ()) -> Report:
        """Takes each op through its phases with the versions that are there.

        What has no verdict is validated, what passed is timed. It stops where a version is to be
        written, or mended (three attempts at most; then the op goes on without it); called again
        it goes on.

        Args:
            ops: names or aliases, in order; by default every op of the workspace.
        """
        names = self._named(ops)
        paused_at = several.take(self, names, sync=self._desk.source)
        return self._remember(self._over_all(names, paused_at))
