"""The MCP server: the toolbox behind the official SDK, on stdio or Streamable HTTP."""

from __future__ import annotations

import os
import signal
import sys
import threading
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import cached_property
from typing import Any, NoReturn

import anyio
import mcp_types as types
from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import MCPError
from starlette.applications import Starlette
from starlette.requests import Request

from triton_magics.errors import TritonMagicsError
from triton_magics.serve import mcp_guide, mcp_resources
from triton_magics.serve.job_model import Caller
from triton_magics.serve.job_service import JobService
from triton_magics.serve.mcp_resources import PAGES, TEMPLATES
from triton_magics.serve.mcp_session import DEFAULT_LIMIT, McpSession, McpSessions
from triton_magics.serve.mcp_tool import Tool
from triton_magics.serve.mcp_toolbox import Toolbox, ToolFault
from triton_magics.serve.mcp_tools import tools

SESSION_HEADER = "mcp-session-id"
PATH = "/mcp"
PROMPT = "develop_kernel"
Context = ServerRequestContext[Any, Any]


class LazyService:
    """A service that opens in a thread, so that the server answers its first message at once.

    Args:
        open_service: opens it.
    """

    def __init__(self, open_service: Callable[[], JobService]) -> None:
        self._open = open_service
        self._lock = threading.Lock()

    @cached_property
    def _service(self) -> JobService:
        return self._open()

    def __call__(self) -> JobService:
        """Return the service; wait until it is open."""
        with self._lock:
            return self._service

    def open(self) -> None:
        """Open it beside the caller."""
        threading.Thread(target=self._try_to_open, name="open-service", daemon=True).start()

    def _try_to_open(self) -> None:
        """Open it; each call of a tool names a fault again, so the log has one line of it."""
        try:
            self()
        except TritonMagicsError as error:
            sys.stderr.write(f"{type(error).__name__}: {error}\n")

    def close(self) -> None:
        """Close it, if it was opened."""
        with self._lock:
            if "_service" in self.__dict__:
                self._service.close()


def make_server(
    service: Callable[[], JobService], *, context_limit: int = DEFAULT_LIMIT
) -> Server[Any]:
    """Return an MCP server over the jobs of a Lab.

    Args:
        service: returns the jobs' service.
        context_limit: tokens of a client's model.
    """
    version: str = sys.modules["triton_magics"].__version__
    handlers = _Handlers(Toolbox(service), McpSessions(context_limit))
    return Server(
        "triton-magics",
        version=version,
        title="triton-magics",
        instructions=mcp_guide.INSTRUCTIONS,
        lifespan=handlers.lifespan,
        on_list_tools=handlers.list_tools,
        on_call_tool=handlers.call_tool,
        on_list_resources=handlers.list_resources,
        on_list_resource_templates=handlers.list_templates,
        on_read_resource=handlers.read_resource,
        on_list_prompts=handlers.list_prompts,
        on_get_prompt=handlers.get_prompt,
    )


class _Handlers:
    """Translate between the SDK's messages and the toolbox."""

    def __init__(self, box: Toolbox, sessions: McpSessions) -> None:
        self._box = box
        self._sessions = sessions

    @asynccontextmanager
    async def lifespan(self, server: Server[Any]) -> AsyncIterator[str]:
        """Name the connection: on stdio it is the session."""
        yield uuid.uuid4().hex

    def _session(self, context: Context) -> McpSession:
        """Return the session of a message; HTTP has one only in the older protocol versions."""
        if context.request is None:
            return self._sessions.get(Caller(session=context.lifespan_context))
        return self._sessions.get(caller_of(context.request))

    # ---------------------------------------------------------------------------------- tools

    async def list_tools(self, context: Context, params: Any) -> types.ListToolsResult:
        """List every tool; none appears later."""
        is_local = context.request is None
        offered = (tool for tool in tools() if is_local or not tool.reads_files)
        return types.ListToolsResult(tools=[_describe(tool) for tool in offered])

    async def call_tool(
        self, context: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        """Call a tool; a fault of the caller is a result with `isError`, which a model can read."""

        async def report(seconds: float, line: str) -> None:
            await context.session.report_progress(seconds, message=line)

        session = self._session(context)
        try:
            _check_files(params.name, is_local=context.request is None)
            result = await self._box.call(session, params.name, params.arguments or {}, report)
        except ToolFault as fault:
            return _answer(fault.as_text(), fault.as_json(), is_error=True)
        return _answer(result.as_text(), result.as_json())

    # ------------------------------------------------------------------------------ resources

    async def list_resources(self, context: Context, params: Any) -> types.ListResourcesResult:
        """List the guides, and the ops of the workspace."""
        pages = await anyio.to_thread.run_sync(lambda: [*PAGES, *mcp_resources.open_ops(self._box)])
        return types.ListResourcesResult(
            resources=[
                types.Resource(uri=p.uri, name=p.name, title=p.title, mime_type=p.mime_type)
                for p in pages
            ]
        )

    async def list_templates(
        self, context: Context, params: Any
    ) -> types.ListResourceTemplatesResult:
        """List the resources that have a name in their uri."""
        return types.ListResourceTemplatesResult(
            resource_templates=[
                types.ResourceTemplate(
                    uri_template=p.uri, name=p.name, title=p.title, mime_type=p.mime_type
                )
                for p in TEMPLATES
            ]
        )

    async def read_resource(
        self, context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        """Return a resource's text."""
        uri = str(params.uri)
        try:
            kind, text = await anyio.to_thread.run_sync(
                mcp_resources.read, self._box, self._session(context), uri
            )
        except TritonMagicsError as error:
            raise MCPError(types.INVALID_PARAMS, str(error)) from error
        content = types.TextResourceContents(uri=uri, mime_type=kind, text=text)
        return types.ReadResourceResult(contents=[content])

    # -------------------------------------------------------------------------------- prompts

    async def list_prompts(self, context: Context, params: Any) -> types.ListPromptsResult:
        """List the prompt of the four phases."""
        op = types.PromptArgument(name="op", description="softmax", required=True)
        text = "Take an op through its four phases: research, write, check, choose."
        return types.ListPromptsResult(
            prompts=[types.Prompt(name=PROMPT, description=text, arguments=[op])]
        )

    async def get_prompt(
        self, context: Context, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult:
        """Return the prompt for an op."""
        op = (params.arguments or {}).get("op")
        if params.name != PROMPT or not op:
            raise MCPError(types.INVALID_PARAMS, f"there is one prompt: {PROMPT}(op)")
        text = types.TextContent(type="text", text=mcp_guide.prompt(op))
        message = types.PromptMessage(role="user", content=text)
        return types.GetPromptResult(messages=[message])


def caller_of(request: Request) -> Caller:
    """Return the client that the guard found, with the session that the request names."""
    caller: Caller = request.scope.get("state", {}).get("caller", Caller())
    session = request.headers.get(SESSION_HEADER, caller.session)
    return replace(caller, session=session)


def _check_files(name: str, *, is_local: bool) -> None:
    """Refuse a tool that reads files to a client that may be on another machine.

    Raises:
        ToolFault: it is one.
    """
    if not is_local and any(
        tool.reads_files and name in (tool.name, tool.verb) for tool in tools()
    ):
        raise ToolFault("Unavailable", f"{name} reads files of the server; it is for stdio only")


def _describe(tool: Tool) -> types.Tool:
    hints = types.ToolAnnotations(
        read_only_hint=True if tool.reads_only else None,
        destructive_hint=None if tool.reads_only else False,
        idempotent_hint=True if tool.idempotent and not tool.reads_only else None,
    )
    return types.Tool(
        name=tool.name,
        description=tool.description,
        input_schema=tool.listed_schema,
        annotations=hints,
    )


def _answer(text: str, value: dict[str, Any], *, is_error: bool = False) -> types.CallToolResult:
    content: list[types.ContentBlock] = [types.TextContent(type="text", text=text)]
    return types.CallToolResult(content=content, structured_content=value, is_error=is_error)


# --------------------------------------------------------------------------------------- stdio


def run_stdio(
    open_service: Callable[[], JobService], *, context_limit: int = DEFAULT_LIMIT
) -> NoReturn:
    """Serve one client on stdin and stdout until it closes them, or SIGTERM or SIGINT; then exit.

    Args:
        open_service: opens the jobs' service; called beside the first message.
        context_limit: tokens of the client's model.
    """
    service = LazyService(open_service)
    service.open()

    def end() -> NoReturn:
        service.close()
        os._exit(0)  # a thread still waits for a line on stdin, and can't be cancelled

    try:
        anyio.run(_run_stdio, make_server(service, context_limit=context_limit), end)
    finally:
        end()


async def _run_stdio(server: Server[Any], end: Callable[[], NoReturn]) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_end_at_signal, end)
        async with stdio_server() as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())
        await anyio.to_thread.run_sync(end)


async def _end_at_signal(end: Callable[[], NoReturn]) -> None:
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for _ in signals:
            await anyio.to_thread.run_sync(end)


# ---------------------------------------------------------------------------------------- HTTP


def create_http_app(service: JobService) -> Starlette:
    """Return the application that serves MCP over Streamable HTTP at /mcp.

    It stands behind the guard, which checks token, Host and Origin.
    """
    return make_server(lambda: service).streamable_http_app(
        streamable_http_path=PATH,
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        max_request_body_size=service.options.max_body_bytes,
    )


__all__ = ["LazyService", "create_http_app", "make_server", "run_stdio"]
