"""What there is to read of an op, a search in all of it, and templates that make a cell."""

from __future__ import annotations

import html
import json
from typing import Any

import ipywidgets as widgets

from triton_magics import knowledge, report
from triton_magics.model import OpPage, Template, short, version_name
from triton_magics.notebook.panel.tab import (
    Act,
    Seen,
    Tab,
    choice,
    offer,
    paragraph,
    prose,
    put,
    region,
    visible,
)

MORE = 4  # further pieces that a search names


class References(Tab):
    """Topics, a search, and the page that is read."""

    title = "References"

    def __init__(self, act: Act, page: OpPage) -> None:
        super().__init__(act)
        self._page = page
        self._inserts = prose()
        self._topic = choice("read", "triton-topic")
        self._topic.layout.width = "auto"
        topics = [(page.facts.name, ""), ("overview", "overview"), ("Triton syntax", "syntax")]
        topics += [(t.title, t.name) for t in page.techniques]
        offer(self._topic, topics, "")
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
        self._text = prose()
        searching = widgets.HBox([self._words, find])
        self.widget = widgets.VBox([self._inserts, self._topic, searching, also, self._text])

    def show(self, seen: Seen) -> None:
        """A template is for the version that comes next."""
        number = max((int(short(v.version)[1:]) for v in seen.state.versions), default=0) + 1
        facts = self._page.facts
        put(self._inserts, value=_insert_buttons(facts.name, facts.pattern, version_name(number)))

    def draw(self) -> None:
        """The op's own page, until another is asked for."""
        if self._unread:
            self._read("")

    def _see_also(self) -> Any:
        made = self._button("", None)
        made.on_click(lambda button: self._search(button.description))
        visible(made, False)
        return made

    def _read(self, topic: str) -> None:
        """A topic by its name; the op's own page by none."""
        if topic:
            self._search(topic)
        else:
            self._show(self._page.facts.name, report.bundle(self._page)["text/html"], ())

    def _search(self, words: str) -> None:
        own = [self._page.facts] if self._page.facts.own else []
        found = knowledge.search(words, own=own)
        self._show(found.title, report.bundle(found)["text/html"], found.more)

    def _show(self, title: str, markup: str, more: tuple[str, ...]) -> None:
        self._unread = False
        put(self._text, value=region(title, markup, height="32em"))
        for i, button in enumerate(self._more):
            put(button, description=more[i] if i < len(more) else "")
            put(button, tooltip=f"read {button.description}")
            visible(button, i < len(more))


def _insert_buttons(op: str, fitting: str, version: str) -> str:
    """A button a template; JupyterLab itself makes the cell, below the one that is active."""
    buttons = " ".join(
        _insert_button(
            Template(
                pattern=pattern, op=op, version=version, source=knowledge.template(pattern, op)
            ),
            fits=pattern == fitting,
        )
        for pattern in knowledge.patterns()
    )
    elsewhere = f"elsewhere than in JupyterLab: `%triton_template {fitting} {op} {short(version)}`"
    return f"<p>new cell for {short(version)} from a template: {buttons}</p>{paragraph(elsewhere)}"


def _insert_button(template: Template, *, fits: bool) -> str:
    """What JupyterLab's command linker does at a click, or at Enter."""
    commands = ["notebook:insert-cell-below", "notebook:replace-selection"]
    arguments = json.dumps({"commands": commands, "args": {"text": template.cell}})
    text = f"{template.pattern} (fits {template.op})" if fits else template.pattern
    return (
        '<button type="button" class="jupyter-button widget-button" style="width: auto" '
        'data-commandlinker-command="apputils:run-all-enabled" '
        f'data-commandlinker-args="{html.escape(arguments)}">{html.escape(text)}</button>'
    )
