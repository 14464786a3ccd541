"""What `%load_ext` puts into a shell, and `%unload_ext` takes out of it."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import triton_magics
from triton_magics.config import Settings, checked, found, from_environment
from triton_magics.errors import TritonMagicsError
from triton_magics.notebook.background import InPlace, Job, Printed, Queue, Slot
from triton_magics.notebook.comment_form import CommentForm
from triton_magics.notebook.completion import Completion
from triton_magics.notebook.display import Display, said
from triton_magics.notebook.jobs import Step
from triton_magics.notebook.jobs import call as called
from triton_magics.notebook.magics import forms, magic
from triton_magics.notebook.progress import InNotebook, InTerminal, ProgressLine
from triton_magics.notebook.tracebacks import explained

if TYPE_CHECKING:
    from triton_magics.lab import Lab
    from triton_magics.notebook.panel import Panel

_MADE_WITH = ["workspace", "history"]  # what a Lab reads when it is made, and not again
_loaded: WeakKeyDictionary[Any, Extension] = WeakKeyDictionary()


def load(shell: Any) -> None:
    """Puts the magics into a shell; a second time does nothing.

    Raises:
        UnknownName, BadValue: a setting can't be; nothing was put in.
    """
    if shell not in _loaded:
        try:
            extension = Extension(shell)
        except TritonMagicsError as error:
            raise explained(error) from None
        _loaded[shell] = extension
        extension.load()


def unload(shell: Any) -> None:
    """Takes them out, with all that they started; where there are none, nothing."""
    extension = _loaded.pop(shell, None)
    if extension is not None:
        extension.unload()


class TritonMagics(Settings):
    """What `%config TritonMagics` shows and sets."""

    def __init__(self, parent: Any) -> None:
        super().__init__(parent=parent)
        self.workspace = from_environment(os.environ).get("workspace", self.workspace)
        self._below = {name: getattr(self, name) for name in self.trait_names(config=True)}
        self._chosen: set[str] = set()
        self.gather()

    def gather(self) -> None:
        """Takes what the environment and the workspace's pyproject.toml say, where nobody chose.

        Raises:
            UnknownName, BadValue: what one of them says can't be.
        """
        values = {**self._below, **found(self.workspace)}
        for name in values.keys() - self._chosen - {"workspace"}:
            setattr(self, name, values[name])

    def update_config(self, config: Any) -> None:
        """Takes what was chosen by `%config`.

        Raises:
            UnknownName, BadValue: no such setting, or not what it may be.
        """
        chosen = config.get(type(self).__name__, {})
        for name, value in chosen.items():
            checked(name, value, "%config TritonMagics")
        self._chosen.update(chosen)
        super().update_config(config)


class Extension:
    """The magics of one shell, and all that goes with them.

    Attributes:
        settings: by `%config TritonMagics`.
        display: how values are shown.
        panels: those that are open; they are closed with the Lab that they show.
    """

    def __init__(self, shell: Any) -> None:
        self.shell = shell
        self.settings = TritonMagics(parent=shell)
        self.display = Display(shell)
        self.panels: list[Panel] = []
        self._forms = forms(self._open_panel)
        self._completion = Completion(self._forms, self._known_lab)
        cells = [name for name, form in self._forms.items() if form.kind == "cell"]
        self._comments = CommentForm(shell, cells)
        self._beside = Queue()
        self._begun_in: tuple[Job, int] | None = None

    def load(self) -> None:
        """Registers everything; imports nothing heavy, starts nothing."""
        triton_magics.configure(self.settings)
        self.settings.observe(self._moved, _MADE_WITH)
        self.shell.configurables.append(self.settings)
        self.display.load()
        self.shell.display_formatter.ipython_display_formatter.for_type(Job, self._show_job)
        self._completion.load(self.shell)
        self._comments.load()
        for name, form in self._forms.items():
            self.shell.register_magic_function(magic(form, self), form.kind, name)

    def unload(self) -> None:
        """Takes everything out again; the Lab and its processes end."""
        for name, form in self._forms.items():
            self.shell.magics_manager.magics[form.kind].pop(name, None)
        self._completion.unload(self.shell)
        self._comments.unload()
        self.display.unload()
        self.shell.configurables.remove(self.settings)
        self.shell.display_formatter.ipython_display_formatter.pop(Job, None)
        self._beside.close()
        self._close_panels()
        triton_magics.configure(None)

    def perform(self, call: Callable[[Lab], Any], *, title: str, quiet: bool = False) -> Any:
        """Calls the Lab from a cell: what a kernel prints, and how far it is, are seen meanwhile.

        Raises:
            KeyboardInterrupt: interrupted where nothing is known.
            TritonMagicsError: as the Lab raises it.
        """
        lab = triton_magics.default_lab()
        if quiet:
            return called(lab, call)
        try:
            with ProgressLine(title, self._place()) as line:
                return called(lab, call, hear=line.tell, say=_print)
        finally:
            for note in lab.notes():
                self.display.show_bundle(said(note))

    def begin(
        self,
        call: Callable[[Lab], Any],
        *,
        title: str,
        passes: Callable[[Any], bool],
        quiet: bool = False,
    ) -> Job:
        """The same beside the notebook: the cell ends at once, its output goes on changing."""
        lab = triton_magics.default_lab()

        def work(*, hear: Callable[[Step], None], say: Callable[[str], None]) -> Any:
            try:
                return called(lab, call, hear=hear, say=say)
            finally:
                for note in () if quiet else lab.notes():
                    self.display.show_bundle(said(note))

        job = Job(title, work, stop=lambda ident: lab.cancel(thread=ident), passes=passes)
        if not quiet:
            job.show(self._slot())
        self._beside.add(job)
        self._begun_in = (job, self.display.n_cells)
        return job

    def _slot(self) -> Slot:
        return InPlace() if self.display.in_notebook else Printed()

    def _show_job(self, job: Job) -> None:
        """A handle that is a cell's value; the cell that began the job shows it already."""
        if not self.display.in_notebook:
            _print(f"{job!r}\n")
        elif self._begun_in != (job, self.display.n_cells):
            job.show(InPlace())

    def _known_lab(self) -> Lab | None:
        """The Lab, for who only wants to look: none is made where there is nothing to see."""
        from triton_magics.workspace.files import STORE

        folder = Path(self.settings.workspace or ".").expanduser()
        there = (folder / STORE).is_dir()
        return triton_magics.default_lab() if there else triton_magics.open_lab()

    def _place(self) -> InNotebook | InTerminal:
        return InNotebook() if self.display.in_notebook else InTerminal(sys.stderr)

    def _moved(self, change: Any) -> None:
        """Another workspace is another Lab, with the settings of its own pyproject.toml."""
        self._beside.close()
        self._close_panels()
        triton_magics.close()
        if change.name == "workspace":
            self.settings.gather()

    # -------------------------------------------------------------------------------- panels

    def _open_panel(self, lab: Lab, asked: Namespace) -> Any:
        """A panel; where there can be none, the state, and why."""
        if why := self._no_panel():
            self.display.show_bundle(said(f"{why}; this is the state now"))
            return lab.status(asked.op)
        from triton_magics.notebook.panel import Panel

        panel = Panel(lab, asked.op)
        self.panels.append(panel)
        if asked.dock and (why := panel.dock()):
            self.display.show_bundle(said(f"{why}; here it is in the cell"))
        return panel

    def _no_panel(self) -> str | None:
        if not self.display.in_notebook:
            return "a panel needs a notebook"
        if find_spec("ipywidgets") is None:
            return "a panel needs ipywidgets: pip install 'triton-magics[lab]'"
        return None

    def _close_panels(self) -> None:
        for panel in self.panels:
            panel.close()
        self.panels.clear()


def _print(text: str) -> None:
    """Shows what a kernel prints, without what would command a terminal (clear it, name it)."""
    from triton_magics.report.blocks import clean  # late: loading the extension is quick

    sys.stdout.write("\r".join(map(clean, text.split("\r"))))
    sys.stdout.flush()
