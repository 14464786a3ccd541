"""Resources of the MCP server: guides, ops, sources, logs, whole results. No SDK."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from pydantic import BaseModel
from pydantic_core import to_json

from triton_magics import knowledge
from triton_magics.errors import UnknownName
from triton_magics.rendering.phrase import fill
from triton_magics.serve import mcp_guide
from triton_magics.serve.mcp_session import McpSession
from triton_magics.serve.mcp_toolbox import GUIDE_URI, URI, Toolbox
from triton_magics.serve.mcp_tools import as_call

SCHEME = "triton://"
MARKDOWN, JSON, PYTHON = "text/markdown", "application/json", "text/x-python"


@dataclass(frozen=True)
class Page:
    """A resource, or a template of resources with a name in braces.

    Attributes:
        uri: `triton://ops/{op}`.
        title: one line.
        mime_type: of its text.
    """

    uri: str
    title: str
    mime_type: str

    @property
    def name(self) -> str:
        """Its uri without the scheme."""
        return self.uri.removeprefix(SCHEME)


PAGES = (
    Page(f"{GUIDE_URI}overview", "How to work: the four phases, the ops", MARKDOWN),
    Page(f"{GUIDE_URI}guide", "Writing Triton kernels: a guide", MARKDOWN),
    Page(f"{GUIDE_URI}syntax", "Triton's syntax and functions", MARKDOWN),
    Page(f"{SCHEME}ops", "Every op, and the state of those of the workspace", JSON),
)
TEMPLATES = (
    Page(f"{GUIDE_URI}{{topic}}", "A page of the guides: mistakes, tiling, tl.load", MARKDOWN),
    Page(f"{SCHEME}ops/{{op}}", "An op: facts, state, versions, next step", JSON),
    Page(f"{SCHEME}ops/{{op}}/{{version}}", "The source of a version", PYTHON),
    Page(f"{SCHEME}logs/{{op}}", "The log of an op, once it is written", MARKDOWN),
    Page(f"{URI}{{id}}", "The whole value of a result", JSON),
)


def open_ops(box: Toolbox) -> Iterator[Page]:
    """Yield the op and the log of each op of the workspace."""
    for op in box.lab.session.workspace.open_ops():
        yield Page(f"{SCHEME}ops/{op}", f"{op}: facts, state, versions, next step", JSON)
        yield Page(f"{SCHEME}logs/{op}", f"{op}: its log", MARKDOWN)


def read(box: Toolbox, session: McpSession, uri: str) -> tuple[str, str]:
    """Return the MIME type and text of a resource.

    Args:
        box: has the Lab and the results.
        session: of the client.
        uri: `triton://ops/softmax/v1`.

    Raises:
        UserError: no such resource, op or version; the message names what there is.
    """
    words = [unquote(word) for word in uri.removeprefix(SCHEME).split("/")]
    if uri.startswith(SCHEME) and (reader := _READERS.get((words[0], len(words)))):
        return reader(box, session, *words[1:])
    uris = ", ".join(page.uri for page in (*PAGES, *TEMPLATES))
    raise UnknownName(f"no resource {uri!r}. There are {uris}")


def _knowledge(box: Toolbox, session: McpSession, topic: str) -> tuple[str, str]:
    if topic == "overview":
        return MARKDOWN, mcp_guide.overview(box.lab)
    page = knowledge.search("overview" if topic == "guide" else topic)
    return MARKDOWN, fill(page.markdown, as_call)


def _ops(box: Toolbox, session: McpSession) -> tuple[str, str]:
    states = {name: box.lab.op_state(name) for name in box.lab.session.workspace.open_ops()}
    names = {*knowledge.op_names(), *box.lab.session.workspace.own_ops()}
    rows = [
        {"op": name, "state": str(states[name].state) if name in states else "not begun"}
        for name in sorted(names)
    ]
    return JSON, json.dumps(rows, indent=1)


def _op(box: Toolbox, session: McpSession, op: str) -> tuple[str, str]:
    own = box.lab.session
    name = own.canonical(op)
    return JSON, _as_json({"facts": own.facts_of(name), "state": own.state(name)})


def _source(box: Toolbox, session: McpSession, op: str, version: str) -> tuple[str, str]:
    own = box.lab.session
    return PYTHON, own.workspace.source(own.canonical(op), version).source


def _log(box: Toolbox, session: McpSession, op: str) -> tuple[str, str]:
    name = box.lab.session.canonical(op)
    path = box.lab.path / "logs" / f"{name}_log.md"
    if not path.is_file():
        raise UnknownName(f"{name} has no log yet: call log(op={name!r}) first")
    return MARKDOWN, path.read_text(encoding="utf-8")


def _result(box: Toolbox, session: McpSession, name: str) -> tuple[str, str]:
    return JSON, _as_json(box.value(name, session))


def _as_json(value: Any) -> str:
    if isinstance(value, BaseModel):
        return value.model_dump_json()
    return to_json(value, inf_nan_mode="strings").decode()


_READERS: dict[tuple[str, int], Callable[..., tuple[str, str]]] = {
    ("knowledge", 2): _knowledge,
    ("ops", 1): _ops,
    ("ops", 2): _op,
    ("ops", 3): _source,
    ("logs", 2): _log,
    ("results", 2): _result,
}

__all__ = ["PAGES", "TEMPLATES", "Page", "open_ops", "read"]
