"""The commands `triton-magics serve` and `triton-magics mcp`."""

from __future__ import annotations

import argparse
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from triton_magics.errors import Unavailable

NEEDED = ("fastapi", "mcp", "uvicorn")


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add the options of `serve`."""
    command.add_argument("--host", default="127.0.0.1", help="address to listen at: 127.0.0.1")
    command.add_argument("--port", type=int, default=8000, help="8000")
    command.add_argument(
        "--mode",
        choices=("both", "fastapi", "mcp"),
        default="both",
        help="REST (fastapi), MCP, or both on one port: both",
    )
    command.add_argument("--workspace", metavar="DIR", help="folder of kernels/ and logs/")


def serve(words: argparse.Namespace) -> int:
    """Serve until SIGTERM or Ctrl-C; return the exit code."""
    _require()
    import uvicorn

    from triton_magics.lab import Lab
    from triton_magics.serve.app import create_app
    from triton_magics.serve.job_service import JobService
    from triton_magics.serve.options import ServeOptions

    options = ServeOptions(host=words.host, port=words.port, mode=words.mode)
    service = JobService(Lab(words.workspace), options)
    try:
        uvicorn.run(create_app(service), host=options.host, port=options.port, http="h11")
    finally:
        service.close()
    return 0


def serve_stdio(words: argparse.Namespace) -> int:
    """Serve MCP on standard input and output until EOF; return the exit code."""
    _require()
    from triton_magics.lab import Lab
    from triton_magics.serve.job_service import JobService

    service = JobService(Lab(words.workspace))
    try:
        server: Any = import_module("triton_magics.serve.mcp_server")
        server.run_stdio(service)
    finally:
        service.close()
    return 0


def _require() -> None:
    absent = [name for name in NEEDED if find_spec(name) is None]
    if absent:
        raise Unavailable(f"{', '.join(absent)} not installed: pip install 'triton-magics[serve]'")
