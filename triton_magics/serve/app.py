"""The ASGI application: REST and MCP on one port, behind one guard."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from fastapi import FastAPI

from triton_magics.errors import TritonMagicsError
from triton_magics.serve.executor_sessions import ExecutorRoutes
from triton_magics.serve.guard import Guard
from triton_magics.serve.guide_routes import GuideRoutes
from triton_magics.serve.guide_run import remove_abandoned
from triton_magics.serve.job_faults import fault_of
from triton_magics.serve.job_service import JobService
from triton_magics.serve.openapi import add_document
from triton_magics.serve.rest import JobRoutes, add_routes, offered_verbs
from triton_magics.serve.tokens import Tokens

_LOG = logging.getLogger("triton_magics.serve")


def create_app(service: JobService, tokens: Tokens | None = None) -> Guard:
    """Return the application of a server; its mode says which of REST and MCP it has.

    MCP is the Starlette application that `serve.mcp_server.create_http_app(service)` returns; its
    routes begin with /mcp, and its lifespan runs within this one. Workers start in the background.

    Args:
        service: runs the jobs.
        tokens: of the clients; None: no token is asked for.
    """
    mode = service.options.mode
    mcp = _mcp_app(service) if mode in ("both", "mcp") else None
    executor = ExecutorRoutes(service)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        threading.Thread(target=_warm, args=(service,), daemon=True).start()
        async with AsyncExitStack() as stack:
            if mcp is not None:
                await stack.enter_async_context(mcp.router.lifespan_context(mcp))
            yield
        executor.close()

    app = FastAPI(
        title="triton_magics",
        version=service.version,
        lifespan=lifespan,
        docs_url=None,  # its page loads scripts of another host
        redoc_url=None,
    )
    routes = JobRoutes(service)
    add_routes(app, routes, verbs_too=mode != "mcp")
    if mode != "mcp":
        GuideRoutes(routes).add_to(app)
        executor.add_to(app)
        add_document(app, offered_verbs())
    if mcp is not None:
        app.router.routes.extend(mcp.routes)
    return Guard(app, service.options, tokens)


def _mcp_app(service: JobService) -> Any:
    name = "triton_magics.serve.mcp_server"
    return import_module(name).create_http_app(service) if find_spec(name) else None


def _warm(service: JobService) -> None:
    remove_abandoned(time.time())
    try:
        service.lab.session.jobs.warm()
    except TritonMagicsError as error:
        service.warm_fault = fault_of(error).message
        _LOG.warning("no worker could be started: %s", service.warm_fault)


__all__ = ["create_app"]
