"""Load the magics into a shell, and unload them."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, WeakSet

import triton_magics
from triton_magics import lab_thread
from triton_magics.config import Settings, check_setting, from_environment, read_settings
from triton_magics.errors import TritonMagicsError
from triton_magics.notebook.background import CellOutput, Job, JobOutput, TerminalOutput
from triton_magics.notebook.comment_form import CommentForm
from triton_magics.notebook.completion import Completion
from triton_magics.notebook.config_magic import ConfigMagic
from triton_magics.notebook.display import Display, folded_bundle, message_bundle
from triton_magics.notebook.job_progress import Step, call, listen_to_jobs
from triton_magics.notebook.magics import make_magics
from triton_magics.notebook.printed_output import PrintedOutput
from triton_magics.notebook.progress import (
    DELAY_S,
    KEEP_S,
    NotebookProgress,
    ProgressLine,
    TerminalProgress,
)
from triton_magics.notebook.tracebacks import explain_error

if TYPE_CHECKING:
    from triton_magics.lab import Lab
    from triton_magics.notebook.panel import Panel
    from triton_magics.session.notes import NoteReader

STORE_FOLDER = ".triton_magics"
_VS_CODE = "__vsc_ipynb_file__"  # a variable that its Jupyter extension sets
_ENGINE = ("triton_magics.lab", "triton_magics.verbs.op", "triton_magics.rendering")
_LAB_SETTINGS = ["workspace", "history", "engine", "scheduler", "token_file"]  # read once
_extensions: WeakKeyDictionary[Any, Extension] = WeakKeyDictionary()


def load(shell: Any) -> None:
    """Load the magics into a shell; do nothing if they are loaded.

    Raises:
        UnknownName, BadValue: a setting is refused; nothing was loaded.
    """
    if shell not in _extensions:
        try:
            extension = Extension(shell)
        except TritonMagicsError as error:
            raise explain_error(error) from None
        _extensions[shell] = extension
        extension.load()


def unload(shell: Any) -> None:
    """Unload the magics and end their processes; do nothing if they are not loaded."""
    extension = _extensions.pop(shell, None)
    if extension is not None:
        extension.unload()


class TritonMagics(Settings):
    """The settings of `%config TritonMagics`."""

    def __init__(self, parent: Any) -> None:
        super().__init__(parent=parent)
        self.workspace = from_environment(os.environ).get("workspace", self.workspace)
        self._profile_values = {name: getattr(self, name) for name in self.trait_names(config=True)}
        self._config_values: set[str] = set()
        self._errors: list[TritonMagicsError] | None = None
        self.read_sources()

    def read_sources(self) -> None:
        """Read the environment and the workspace's pyproject.toml, except for what `%config` set.

        Raises:
            UnknownName, BadValue: one of them is refused.
        """
        values = {**self._profile_values, **read_settings(self.workspace)}
        for name in values.keys() - self._config_values - {"workspace"}:
            setattr(self, name, values[name])

    def update_config(self, config: Any) -> None:
        """Take the values of `%config`.

        Raises:
            UnknownName, BadValue: no such setting, or a value out of its range.
        """
        values = config.get(type(self).__name__, {})
        try:
            for name, value in values.items():
                check_setting(name, value, "%config TritonMagics")
        except TritonMagicsError as error:
            if self._errors is None:
                raise
            self._errors.append(error)
            return
        self._config_values.update(values)
        super().update_config(config)

    @contextmanager
    def collect_errors(self) -> Iterator[list[TritonMagicsError]]:
        """Collect the errors of `update_config`, for a caller that would only log them."""
        errors: list[TritonMagicsError] = []
        self._errors = errors
        try:
            yield errors
        finally:
            self._errors = None


class Extension:
    """The magics of one shell, with settings, display, completion and panels.

    Attributes:
        settings: set by `%config TritonMagics`.
        display: shows values.
        panels: the open panels; closed with their Lab.
    """

    def __init__(self, shell: Any) -> None:
        self.shell = shell
        self.settings = TritonMagics(parent=shell)
        self.display = Display(shell)
        self.panels: list[Panel] = []
        self._magics = make_magics(self)
        self._completion = Completion(self._magics, self._existing_lab)
        cells = [magic.name for magic in self._magics if magic.kind == "cell"]
        self._comments = CommentForm(shell, cells)
        self._config = ConfigMagic(shell, self.settings.collect_errors)
        self._known_labs: WeakSet[Lab] = WeakSet()
        self._latest_job: tuple[Job, int] | None = None

    def load(self) -> None:
        """Register everything; a thread imports the engine, and opens the workspace's Lab."""
        triton_magics.configure(self.settings)
        self.settings.observe(self._reopen_lab, _LAB_SETTINGS)
        self.shell.configurables.append(self.settings)
        self.display.load()
        self.shell.display_formatter.ipython_display_formatter.for_type(Job, self._show_job)
        self._completion.load(self.shell)
        self._comments.load()
        self._config.load()
        for magic in self._magics:
            self.shell.register_magic_function(magic, magic.kind, magic.name)
        lab_thread.start(_ENGINE, triton_magics.default_lab if self._has_store() else None)

    def wait_for_imports(self, *, quiet: bool) -> None:
        """Return once the engine is imported; unless quiet, show meanwhile that it is."""
        if quiet or not lab_thread.is_importing():
            lab_thread.wait_for_imports()
            return
        with ProgressLine("importing triton_magics", self._progress_display()):
            lab_thread.wait_for_imports()

    def unload(self) -> None:
        """Remove everything; end the Lab and its processes."""
        lab_thread.wait_for_imports()
        for magic in self._magics:
            self.shell.magics_manager.magics[magic.kind].pop(magic.name, None)
        self._completion.unload(self.shell)
        self._comments.unload()
        self._config.unload()
        self.display.unload()
        self.shell.configurables.remove(self.settings)
        self.shell.display_formatter.ipython_display_formatter.pop(Job, None)
        self._close_panels()
        triton_magics.configure(None)

    @contextmanager
    def progress(self, title: str, quiet: bool, *, is_job: bool = False) -> Iterator[Lab]:
        """Yield the Lab; meanwhile show progress and a kernel's prints, afterwards notes.

        Args:
            title: title of the progress line.
            quiet: show none of these.
            is_job: a worker runs something: show progress at once, not only what takes long.
        """
        lab = triton_magics.default_lab()
        if quiet:
            yield lab
            return
        reader = self._note_reader(lab)
        printed = PrintedOutput(_print)
        on_output = printed if self.display.in_notebook else _print  # a terminal has no folds
        delay_s = DELAY_S if is_job else KEEP_S
        try:
            with (
                ProgressLine(title, self._progress_display(), delay_s=delay_s) as line,
                listen_to_jobs(lab, on_progress=line.update, on_output=on_output),
                _call_on_change(lab, line.set_saved if title.startswith("kernel ") else None),
            ):
                yield lab
        finally:
            if printed.rest:
                self.display.show_bundle(folded_bundle(printed))
            self._show_notes(reader)

    def _note_reader(self, lab: Lab) -> NoteReader:
        """Return a reader for one call: the first one of a Lab shows the notes of its opening."""
        reader = lab.note_reader(from_start=lab not in self._known_labs)
        self._known_labs.add(lab)
        return reader

    def _show_notes(self, reader: NoteReader) -> None:
        from triton_magics.verbs._phrase import as_magic, with_step

        for note in reader.new():
            self.display.show_bundle(message_bundle(with_step(*note, as_magic)))

    def start_job(
        self,
        verb: Callable[[Lab], Any],
        *,
        title: str,
        passes: Callable[[Any], bool],
        quiet: bool = False,
    ) -> Job:
        """Start a job in the background; its output in the cell is updated while it runs."""
        lab = triton_magics.default_lab()
        reader = self._note_reader(lab)

        def work(on_progress: Callable[[Step], None]) -> Any:
            try:
                return call(lab, verb, on_progress=on_progress, on_output=_print)
            finally:
                if not quiet:
                    self._show_notes(reader)

        job = Job(title, passes=passes)
        if not quiet:
            job.show(self._job_output())
        job.start(lab.jobs, work)
        self._latest_job = (job, self.display.n_cells)
        return job

    def _job_output(self) -> JobOutput:
        return CellOutput() if self.display.in_notebook else TerminalOutput()

    def _show_job(self, job: Job) -> None:
        """Show a handle that is a cell's value, except in the cell that started the job."""
        if not self.display.in_notebook:
            _print(f"{job!r}\n")
        elif self._latest_job != (job, self.display.n_cells):
            job.show(CellOutput())

    def _existing_lab(self) -> Lab | None:
        """Return the Lab for completion; make one only if the workspace exists."""
        return triton_magics.default_lab() if self._has_store() else triton_magics.open_lab()

    def _has_store(self) -> bool:
        """Return True if the workspace exists; opening a Lab would make one."""
        return (Path(self.settings.workspace or ".").expanduser() / STORE_FOLDER).is_dir()

    def _progress_display(self) -> NotebookProgress | TerminalProgress:
        return NotebookProgress() if self.display.in_notebook else TerminalProgress(sys.stderr)

    def _reopen_lab(self, change: Any) -> None:
        """Close the Lab; the next call opens one with the new value (and pyproject.toml)."""
        self._close_panels()
        triton_magics.close()
        if change.name == "workspace":
            self.settings.read_sources()

    # -------------------------------------------------------------------------------- panels

    def open_panel(self, lab: Lab, request: Any) -> Any:
        """Return a panel; without widgets show the reason and return the state."""
        if reason := self._reason_for_no_panel():
            self.display.show_bundle(message_bundle(f"{reason}; this is the state now"))
            return lab.status(request.op)
        from triton_magics.notebook.panel import Panel

        panel = Panel(lab, request.op)
        self.panels.append(panel)
        if request.dock and (reason := self._reason_for_no_side() or panel.dock()):
            self.display.show_bundle(message_bundle(f"{reason}; it is shown in the cell"))
        return panel

    def _reason_for_no_side(self) -> str | None:
        """Return why there is no side: VS Code and Colab show no widget outside a cell."""
        if _VS_CODE in self.shell.user_ns or "google.colab" in sys.modules:
            return "--dock needs JupyterLab"
        return None

    def _reason_for_no_panel(self) -> str | None:
        if not self.display.in_notebook:
            return "a panel needs a notebook"
        if find_spec("ipywidgets") is None:
            return "a panel needs ipywidgets: pip install 'triton-magics[lab]'"
        return None

    def _close_panels(self) -> None:
        for panel in self.panels:
            panel.close()
        self.panels.clear()


@contextmanager
def _call_on_change(lab: Lab, listener: Callable[[], None] | None) -> Iterator[None]:
    """Call the listener whenever something of the workspace has changed."""
    if listener is None:
        yield
        return

    def notify(_op: str) -> None:
        listener()

    lab.on_change.append(notify)
    try:
        yield
    finally:
        lab.on_change.remove(notify)


def _print(text: str) -> None:
    """Print the text of a kernel without control sequences for the terminal."""
    from triton_magics.rendering.blocks import clean  # imported late: loading must be quick

    sys.stdout.write("\r".join(map(clean, text.split("\r"))))
    sys.stdout.flush()
