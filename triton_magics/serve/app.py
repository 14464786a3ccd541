"""The ASGI application: REST and MCP on one port."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from fastapi import FastAPI

from triton_magics.serve.job_service import JobService

TITLE = "triton_magics"


def create_app(service: JobService) -> FastAPI:
    """Return the application of a server; its mode says which of REST and MCP it has.

    MCP is the Starlette application that `serve.mcp_server.create_http_app(service)` returns; its
    routes begin with /mcp, and its lifespan runs within this one.
    """
    mcp = _mcp_app(service) if service.options.mode in ("both", "mcp") else None

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            if mcp is not None:
                await stack.enter_async_context(mcp.router.lifespan_context(mcp))
            yield

    app = FastAPI(title=TITLE, lifespan=lifespan)
    if service.options.mode in ("both", "fastapi"):
        pass
    if mcp is not None:
        app.router.routes.extend(mcp.routes)
    return app


def _mcp_app(service: JobService) -> Any:
    name = "triton_magics.serve.mcp_server"
    return import_module(name).create_http_app(service) if find_spec(name) else None


__all__ = ["create_app"]
