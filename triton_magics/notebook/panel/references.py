"""The references tab: pages of an op, a search, and templates that become a cell."""

from __future__ import annotations

import html
import json
from typing import Any

import ipywidgets as widgets

from triton_magics import knowledge, rendering
from triton_magics.model import OpPage, Template, short, version_name
from triton_magics.notebook.display import template_cell
from triton_magics.notebook.panel.tab import (
    PanelState,
    RunAction,
    Tab,
    button_choice,
    html_widget,
    paragraph_html,
    scrollable_region,
    set_options,
    set_traits,
    set_visible,
)
from triton_magics.verbs._phrase import as_magic

MORE = 4  # further pages that a search offers


class References(Tab):
    """Topics, a search, and the open page."""

    title = "References"

    def __init__(self, run_action: RunAction, page: OpPage) -> None:
        super().__init__(run_action)
        self._page = page
        self._inserts = html_widget()
        self._topic = button_choice("read", "triton-topic")
        self._topic.layout.width = "auto"
        topics = [(page.facts.name, ""), ("overview", "overview"), ("Triton syntax", "syntax")]
        topics += [(t.title, t.name) for t in page.techniques]
        set_options(self._topic, topics, "")
        self._words = widgets.Text(
            placeholder="tl.dot, online reduction", description="search", continuous_update=False
        )
        find = self._button("search", None, "in guides, facts, techniques and templates")
        find.on_click(lambda _: self._search(self._words.value))
        self._words.observe(lambda change: self._search(change.new), "value")
        self._topic.observe(lambda change: self._read(change.new), "value")
        self._unread = True
        self._more = [self._see_also() for _ in range(MORE)]
        also = widgets.HBox(self._more, layout=widgets.Layout(flex_flow="row wrap"))
        self._text = html_widget()
        searching = widgets.HBox([self._words, find])
        self.widget = widgets.VBox([self._inserts, self._topic, searching, also, self._text])

    def show(self, now: PanelState) -> None:
        """Offer templates for the next version."""
        number = max((int(short(v.version)[1:]) for v in now.state.versions), default=0) + 1
        facts = self._page.facts
        set_traits(
            self._inserts, value=_insert_buttons(facts.name, facts.pattern, version_name(number))
        )

    def draw(self) -> None:
        """Show the op's page if no other is open."""
        if self._unread:
            self._read("")

    def _see_also(self) -> Any:
        button = self._button("", None)
        button.on_click(lambda clicked: self._search(clicked.description))
        set_visible(button, False)
        return button

    def _read(self, topic: str) -> None:
        """Show a topic, or the op's page for an empty name."""
        if topic:
            self._search(topic)
        else:
            self._show(
                self._page.facts.name, rendering.bundle(self._page, as_magic)["text/html"], ()
            )

    def _search(self, words: str) -> None:
        own = [self._page.facts] if self._page.facts.own else []
        result = knowledge.search(words, own=own)
        self._show(result.title, rendering.bundle(result, as_magic)["text/html"], result.more)

    def _show(self, title: str, markup: str, more: tuple[str, ...]) -> None:
        self._unread = False
        set_traits(self._text, value=scrollable_region(title, markup, height="32em"))
        for i, button in enumerate(self._more):
            set_traits(button, description=more[i] if i < len(more) else "")
            set_traits(button, tooltip=f"read {button.description}")
            set_visible(button, i < len(more))


def _insert_buttons(op: str, fitting: str, version: str) -> str:
    """Return a button for each template; JupyterLab inserts the cell below the active one."""
    buttons = " ".join(
        _insert_button(
            Template(
                pattern=pattern, op=op, version=version, source=knowledge.template(pattern, op)
            ),
            fits=pattern == fitting,
        )
        for pattern in knowledge.patterns()
    )
    hint = f"outside JupyterLab: `%triton_template {fitting} {op} {short(version)}`"
    new_cell = f"<p>new cell for {short(version)} from a template: {buttons}</p>"
    return new_cell + paragraph_html(hint)


def _insert_button(template: Template, *, fits: bool) -> str:
    """Return a button for JupyterLab's command linker, which works by click and by Enter."""
    commands = ["notebook:insert-cell-below", "notebook:replace-selection"]
    arguments = json.dumps({"commands": commands, "args": {"text": template_cell(template)}})
    text = f"{template.pattern} (fits {template.op})" if fits else template.pattern
    return (
        '<button type="button" class="jupyter-button widget-button" style="width: auto" '
        'data-commandlinker-command="apputils:run-all-enabled" '
        f'data-commandlinker-args="{html.escape(arguments)}">{html.escape(text)}</button>'
    )
