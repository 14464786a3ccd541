"""Entry points for Jupyter's servers: a proxied server on a unix socket, and tools over MCP.

`jupyter-server-proxy` starts the first behind the login of Jupyter or its Hub. Jupyter's own MCP
server (`jupyter-server-mcp`) lists the second, if the setting `jupyter_mcp` is on: its port asks
for no token, so whoever reaches it could run code here.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Awaitable, Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from triton_magics.config import Settings
from triton_magics.serve.mcp_tool import Tool
from triton_magics.serve.mcp_tools import tools

if TYPE_CHECKING:
    from triton_magics.serve.mcp_session import McpSession
    from triton_magics.serve.mcp_toolbox import Toolbox

START_S = 60
PREFIX = "tool_"  # a tool may have the name of a module
_TYPES: dict[str, type] = {
    "string": str, "integer": int, "number": float, "boolean": bool, "array": list, "object": dict,
}  # fmt: skip


def proxied_server() -> dict[str, Any]:
    """Return how `jupyter-server-proxy` starts the server: on a socket of this user alone."""
    command = ["-m", "triton_magics", "serve", "--unix-socket", "{unix_socket}", "--no-auth"]
    return {
        "command": [sys.executable, *command],
        "unix_socket": True,
        "timeout": START_S,
        "request_headers_override": {"Host": "localhost"},  # the socket has no other name
        "launcher_entry": {"enabled": False},  # it has no page
    }


def mcp_tools() -> list[str]:
    """Return the tools for Jupyter's own MCP server; none unless the user turned them on."""
    if not Settings.load().jupyter_mcp:
        return []
    return [f"{__name__}:{PREFIX}{tool.name}" for tool in tools() if not tool.reads_files]


def __getattr__(name: str) -> Any:
    """Return the function of a tool: `tool_validate_correctness`."""
    tool = next((each for each in tools() if PREFIX + each.name == name), None)
    if tool is None:
        raise AttributeError(name)
    return _function_of(tool)


def _function_of(tool: Tool) -> Callable[..., Awaitable[str]]:
    """Return a tool as a function with its arguments, for servers that read signatures."""

    async def call(**arguments: Any) -> str:
        from triton_magics.serve.mcp_toolbox import ToolFault

        sent = {name: value for name, value in arguments.items() if value is not None}
        box, session = _toolbox()
        try:
            result = await box.call(session, tool.name, sent, _report_nothing)
        except ToolFault as fault:
            return fault.as_text()
        return result.as_text()

    schema = tool.listed_schema
    required = schema.get("required", ())
    parameters = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if name in required else None,
            annotation=_annotation(each, is_required=name in required),
        )
        for name, each in schema["properties"].items()
    ]
    parameters.sort(key=lambda each: each.default is None)
    call.__name__ = call.__qualname__ = tool.name
    call.__doc__ = tool.description
    call.__signature__ = inspect.Signature(parameters, return_annotation=str)  # type: ignore[attr-defined]
    call.__annotations__ = {each.name: each.annotation for each in parameters} | {"return": str}
    return call


def _annotation(schema: dict[str, Any], *, is_required: bool) -> Any:
    kind = _TYPES[schema.get("type", "string")]
    return kind if is_required else kind | None


async def _report_nothing(seconds: float, line: str) -> None:
    pass


@cache
def _toolbox() -> tuple[Toolbox, McpSession]:
    """Return the tools of this process and its one session; opens the Lab."""
    import atexit

    from triton_magics.lab import Lab
    from triton_magics.serve.job_model import Caller
    from triton_magics.serve.job_service import JobService
    from triton_magics.serve.mcp_session import McpSession
    from triton_magics.serve.mcp_toolbox import Toolbox

    service = JobService(Lab(os.environ.get("TRITON_MAGICS_WORKSPACE")))
    atexit.register(service.close)
    return Toolbox(lambda: service), McpSession(Caller("jupyter", "1"))


__all__ = ["mcp_tools", "proxied_server"]
