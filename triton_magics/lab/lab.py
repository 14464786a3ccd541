"""The laboratory: a session with one method per verb, and queries for front ends."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Self

from triton_magics import knowledge, languages
from triton_magics.config import Settings, resolve_workspace
from triton_magics.errors import BadValue
from triton_magics.execution import Executor
from triton_magics.execution.protocol import Progress
from triton_magics.lab.verb_methods import VerbMethods
from triton_magics.model import (
    Benchmark,
    EngineState,
    Event,
    OpState,
    Profile,
    Setting,
    Validation,
    Value,
)
from triton_magics.model.base import set_renderer
from triton_magics.session import Session
from triton_magics.session.job_manager import JobManager, RunningJob
from triton_magics.session.notes import NoteReader
from triton_magics.verbs._base import Request, Verb
from triton_magics.verbs._batch import BatchResult, Step, read_items, run_items
from triton_magics.verbs._phrase import as_python, with_step

TEXT_LINES = 40  # of a value that is printed


def _text_of(value: Value) -> str | None:
    """Return the first lines of the text that a terminal shows; None for a value without a view."""
    from triton_magics import rendering
    from triton_magics.rendering.views import VIEWS

    if type(value) not in VIEWS:
        return None
    lines = rendering.bundle(value, as_python)["text/plain"].rstrip().splitlines()
    cut = len(lines) - TEXT_LINES
    return "\n".join([*lines[:TEXT_LINES], *([f"... {cut} more lines"] if cut > 0 else [])])


set_renderer(_text_of)


class Lab(VerbMethods):
    """A workspace, an executor and the rules between them.

    Args:
        path: folder of kernels/ and logs/; by default the one of the settings, else this one.
        strict: a step that the workflow does not allow is an error; else a note.
        settings: of the user; by default those of pyproject.toml and the environment.
        executor: runs kernels; by default that of the settings, started when first needed.
        engine: old name of `executor`.

    Raises:
        BadValue: the executor is the address of one, which is a setting.
    """

    def __init__(
        self,
        path: str | Path | None = None,
        *,
        strict: bool | None = None,
        settings: Settings | None = None,
        executor: Executor | None = None,
        engine: Executor | None = None,
    ) -> None:
        address: object = executor or engine
        if isinstance(address, str):
            raise BadValue(
                f"{address!r} is an address: write settings=Settings(engine={address!r})"
            )
        self.settings = settings or Settings.load(path)
        folder = resolve_workspace(path or self.settings.workspace or ".")
        self.session = Session(folder, self.settings, executor=executor or engine, strict=strict)

    def perform(self, verb: Verb, request: Request) -> Any:
        """Run a verb with a request that is checked already: the call of every front end."""
        return verb.run(self.session, request)

    def map(
        self, items: Iterable[Step | Sequence[Step]], *, at_once: int | None = None
    ) -> Iterator[BatchResult]:
        """Run many verbs, several at the same time; yield each result as soon as there is one.

        Each item is a step, `{"verb": "validate", "arguments": {"op": "softmax", "version":
        "v3"}}`, or a list of steps that run in order. One that fails hurts no other. `entry.line`
        of a result is the number of its item, from 1. Leaving the loop cancels what still runs.

        Args:
            items: what to run; all are checked before the first runs.
            at_once: items at the same time; by default two more than there are devices and lanes.

        Raises:
            BadValue: names every item that is refused.
        """
        return run_items(self.session, read_items(items), at_once=at_once)

    @property
    def path(self) -> Path:
        """Folder of the workspace, absolute."""
        return self.session.path

    @property
    def last(self) -> Any:
        """Result of the last verb, also where it was interrupted or raised."""
        return self.session.last

    @property
    def on_progress(self) -> Callable[[Progress], None] | None:
        """Called with every step of a job of this thread."""
        return self.session.jobs.manager.listeners.on_progress

    @on_progress.setter
    def on_progress(self, listener: Callable[[Progress], None] | None) -> None:
        self.session.jobs.manager.listeners.on_progress = listener

    @property
    def newest_job(self) -> str:
        """Newest job of this thread: `validate softmax v2_tiling`."""
        return self.session.jobs.manager.listeners.newest

    @property
    def on_output(self) -> Callable[[str], None] | None:
        """Called with what a kernel prints, as it prints it, in a job of this thread."""
        return self.session.jobs.manager.listeners.on_output

    @on_output.setter
    def on_output(self, listener: Callable[[str], None] | None) -> None:
        self.session.jobs.manager.listeners.on_output = listener

    @property
    def on_change(self) -> list[Callable[[str], None]]:
        """Each is called with an op's name after something was recorded of it."""
        return self.session.on_change

    @property
    def jobs(self) -> JobManager:
        """The jobs under way and the calls that run beside their callers."""
        return self.session.jobs.manager

    @property
    def on_jobs_change(self) -> list[Callable[[tuple[RunningJob, ...]], None]]:
        """Each is called with the jobs under way, in whatever thread, whenever they change."""
        return self.session.jobs.manager.watchers

    @property
    def running_jobs(self) -> tuple[RunningJob, ...]:
        """Jobs under way: the first runs, the others wait for it."""
        return self.session.jobs.manager.jobs

    def close(self) -> None:
        """End the executor's processes and close the store; a second time does nothing."""
        self.session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ------------------------------------------------------------------- reading, without a verb

    def op_names(self) -> tuple[str, ...]:
        """Return every name that an op answers to: shipped ones, their aliases, your own."""
        own = self.session.workspace.own_ops()
        return tuple(sorted({*knowledge.op_names(), *knowledge.aliases(), *own}))

    def sizes(self, op: str) -> tuple[str, ...]:
        """Return the names of an op's sizes, the smallest first."""
        return tuple(self.session.facts_of(self.session.canonical(op)).sizes)

    def validation(self, op: str, version: str) -> Validation | None:
        """Return the newest validation of a version's newest attempt."""
        return self.session.workspace.latest_validation(self.session.canonical(op), version)

    def benchmark(self, op: str) -> Benchmark | None:
        """Return the newest benchmark of an op."""
        return self.session.workspace.latest_benchmark(self.session.canonical(op))

    def newest_profile(self, op: str, version: str) -> Profile | None:
        """Return the newest profile of a version's newest attempt."""
        name = self.session.canonical(op)
        source = self.session.workspace.source(name, version)
        return self.session.workspace.latest_profile(name, source.sha256)

    def knobs(self, op: str, version: str) -> dict[str, Setting | None]:
        """Return the tunable parameters of a version with their values; None: no value is set."""
        source = self.session.workspace.source(self.session.canonical(op), version)
        tunables = languages.get(source.language).tunables(source.source)
        return {name: knob.value for name, knob in tunables.knobs.items()} if tunables else {}

    def op_state(self, op: str) -> OpState:
        """Return the state of an op; `last` stays, nothing is recorded.

        Raises:
            UnknownOp: no such op.
            WorkspaceError: the store can't be read, or its folder is gone.
        """
        return self.session.state(self.session.canonical(op))

    def change_counter(self) -> int:
        """Return a number that changes when another process or Lab has recorded something.

        Cheap enough to be asked several times a second.

        Raises:
            WorkspaceError: the store can't be read, or its folder is gone.
        """
        return self.session.workspace.change_counter()

    def events(self, op: str, *, limit: int | None = None) -> tuple[Event, ...]:
        """Return the events of an op, the oldest first.

        Args:
            op: its name or alias.
            limit: only the newest ones, this many.
        """
        return tuple(self.session.workspace.events(self.session.canonical(op), limit=limit))

    def engine_state(self) -> EngineState:
        """Return the state of the executor."""
        return self.session.jobs.executor.state()

    def cancel(self, *, thread: int | None = None) -> str | None:
        """Interrupt the job that runs, whoever started it here; safe in any thread.

        Args:
            thread: only if this one started it, by `threading.get_ident()`.

        Returns:
            The job that is interrupted, `validate softmax v2_tiling`; None where nothing runs.
        """
        return self.session.jobs.manager.cancel(thread=thread)

    def notes(self) -> tuple[str, ...]:
        """Return every note so far, each once: steps out of order, repairs of the store."""
        return tuple(with_step(*note, as_python) for note in self.session.notes.all)

    def note_reader(self, *, from_start: bool = True) -> NoteReader:
        """Return a reader of the notes with a place of its own; `new()` gives those since then.

        Args:
            from_start: begin at the first note, not after the newest.
        """
        return self.session.notes.reader(from_start=from_start)
