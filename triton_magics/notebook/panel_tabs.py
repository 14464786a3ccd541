"""The tabs of a panel: versions, plots, references, log."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import ipywidgets as widgets

from triton_magics import report
from triton_magics.model import OpPage, OpState, short
from triton_magics.report.blocks import Table, Text, plain
from triton_magics.verbs import difference

if TYPE_CHECKING:
    from triton_magics.lab import Lab

Action = Callable[["Lab"], Any]
Act = Callable[[Action], None]
_COLUMNS = ("version", "verdict", "final", "speedup", "attempts", "notes")


class Tab:
    """A part of a panel.

    Attributes:
        title: on its tab.
        widget: its content.
    """

    title = ""

    def __init__(self, act: Act) -> None:
        self._act = act
        self._buttons: list[Any] = []
        self._resting = False
        self.widget: Any = widgets.VBox()

    def show(self, state: OpState) -> None:
        """Takes what there is to show."""

    def draw(self) -> None:
        """Does what is worth doing only for a tab that is seen."""

    def rest(self, resting: bool) -> None:
        """Disables the buttons while a job is on."""
        self._resting = resting
        for button in self._buttons:
            button.disabled = resting

    def _button(self, text: str, action: Action, tooltip: str) -> Any:
        button = widgets.Button(
            description=text,
            tooltip=tooltip,
            disabled=self._resting,
            layout=widgets.Layout(width="auto"),
        )
        button.on_click(lambda _: self._act(action))
        self._buttons.append(button)
        return button


class Versions(Tab):
    """Every version with its verdict, time and badges, and what can be done with it."""

    title = "Versions"

    def __init__(self, act: Act) -> None:
        super().__init__(act)
        self._cells: dict[tuple[str, str], Any] = {}
        columns = f"repeat({len(_COLUMNS)}, max-content) auto"
        layout = widgets.Layout(grid_template_columns=columns, grid_gap="0 1.2em")
        self._grid = widgets.GridBox(layout=layout)
        self._empty = widgets.HTML()
        self._for_all = widgets.HBox()
        self.widget = widgets.VBox([self._empty, self._grid, self._for_all])

    def show(self, state: OpState) -> None:
        """Shows the versions as they stand; widgets that are there stay, so that focus does."""
        self._empty.value = "" if state.versions else _paragraph(f"next: `{state.next_step}`")
        if not state.versions:
            return
        table = next(block for block in report.view(state) if isinstance(block, Table))
        wanted = [table.header.index(name) for name in _COLUMNS]
        children = [self._cell("", name, f"<b>{name}</b>") for name in (*_COLUMNS, "")]
        for i, row in enumerate(table.rows):
            version = state.versions[i].version
            before = state.versions[i - 1].version if i else None
            cells = (
                self._cell(version, table.header[at], html.escape(plain(row[at]))) for at in wanted
            )
            children += [*cells, self._buttons_of(state.op, version, before)]
        if self._grid.children != tuple(children):
            self._grid.children = tuple(children)
        self._offer(state.op)

    def _cell(self, version: str, column: str, markup: str) -> Any:
        key = (version, column)
        if key not in self._cells:
            self._cells[key] = widgets.HTML()
        self._cells[key].value = markup
        return self._cells[key]

    def _buttons_of(self, op: str, version: str, before: str | None) -> Any:
        key = (version, "buttons")
        if key not in self._cells:
            self._cells[key] = widgets.HBox(self._made(op, version, before))
        return self._cells[key]

    def _made(self, op: str, version: str, before: str | None) -> list[Any]:
        name = f"{op} {short(version)}"
        buttons = [
            self._button("validate", lambda lab: lab.validate(op, version), f"is {name} right?"),
            self._button("bench", lambda lab: lab.bench(op, version), f"how fast is {name}?"),
            self._button("code", lambda lab: lab.source(op, version), f"the code of {name}"),
        ]
        if before:
            changes = self._button(
                f"diff with {short(before)}",
                lambda lab: difference(lab.source(op, before), lab.source(op, version)),
                f"what changed from {short(before)} to {name}",
            )
            buttons.append(changes)
        return buttons

    def _offer(self, op: str) -> None:
        """What is done with all versions at once."""
        if not self._for_all.children:
            self._for_all.children = (
                self._button("validate all", lambda lab: lab.validate(op, "all"), "every version"),
                self._button("bench all", lambda lab: lab.bench(op), "every version that passed"),
            )


class Plots(Tab):
    """The newest benchmark as a picture."""

    title = "Plots"

    def __init__(self, act: Act, picture: Callable[[], Mapping[str, str] | None]) -> None:
        super().__init__(act)
        self._picture = picture
        self._stale = True
        self.widget = widgets.HTML()

    def show(self, state: OpState) -> None:
        """What is drawn may be out of date now."""
        self._stale = True

    def draw(self) -> None:
        """Draws the picture anew where there may be another."""
        if self._stale:
            faces = self._picture()
            nothing = _paragraph("nothing was timed yet")
            self.widget.value = faces["text/html"] if faces else nothing
            self._stale = False


class References(Tab):
    """What there is to know of the op, and a search in all there is to read."""

    title = "References"

    def __init__(self, act: Act, page: OpPage) -> None:
        super().__init__(act)
        self._words = widgets.Text(
            placeholder="online reduction", description="search", continuous_update=False
        )
        search = self._button(
            "search", lambda lab: lab.ref(self._words.value), "in guides, facts and techniques"
        )
        facts = widgets.HTML(report.bundle(page)["text/html"])
        self.widget = widgets.VBox([widgets.HBox([self._words, search]), facts])


class Log(Tab):
    """The development log: where it is, and how to write it anew."""

    title = "Log"

    def __init__(self, act: Act, op: str) -> None:
        super().__init__(act)
        self._text = widgets.HTML()
        write = self._button("write the log", lambda lab: lab.export(op), f"%triton_log {op}")
        self.widget = widgets.VBox([write, self._text])

    def show(self, state: OpState) -> None:
        """How much there is to tell."""
        attempts = sum(v.attempt for v in state.versions)
        self._text.value = _paragraph(
            f"{state.n_events} events · {len(state.versions)} versions in {attempts} attempts · "
            f"the log goes to `logs/{state.op}_log.ipynb`, with Markdown and HTML beside it"
        )


def _paragraph(text: str) -> str:
    return report.to_html((Text(text),))
