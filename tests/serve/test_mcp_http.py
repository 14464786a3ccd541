"""MCP over Streamable HTTP: a real socket, the guard, and the official client of two eras."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
import httpx
import pytest
import uvicorn
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

from tests.execution_kit import wait_until
from tests.fake_executor import FakeExecutor
from tests.serve.mcp_kit import SOURCE, Agent, running
from tests.serve.serve_kit import TOKENS, bearer
from triton_magics.serve.app import create_app
from triton_magics.serve.tokens import Tokens


@contextmanager
def served(path: Path, engine: FakeExecutor | None = None) -> Iterator[str]:
    """Give the address of a server in a thread."""
    with running(path, engine or FakeExecutor()) as service:
        config = uvicorn.Config(create_app(service, Tokens(TOKENS)), port=0, log_config=None)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run)
        thread.start()
        try:
            wait_until(lambda: server.started, 20.0)
            yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_a_version_is_written_and_judged_over_http(tmp_path: Path, mode: str) -> None:
    async def run(url: str) -> None:
        async with create_mcp_http_client(headers=bearer()) as http:
            transport = streamable_http_client(f"{url}/mcp", http_client=http)
            async with Client(transport, mode=mode) as client:
                agent = Agent(client)
                await agent("get_torch_op_info", op="softmax")
                op = {} if mode == "legacy" else {"op": "softmax"}  # 2026-07 has no session
                source = SOURCE.format("v1")
                assert (await agent("write_kernel_code", source=source, **op)).value["ok"] is True
                assert (await agent("validate_correctness", **op)).value["status"] == "passed"
                names = {tool.name for tool in (await client.list_tools()).tools}
                assert "import" not in names
                refused = await agent("import", path="/etc/passwd")
                assert "reads files of the server" in refused.value["message"]
                if not op:
                    missing = await agent("check_context_usage")
                    assert missing.value["figures"]["tokens"] > 0

    with served(tmp_path) as url:
        anyio.run(run, url)


def test_the_guard_stands_before_mcp(tmp_path: Path) -> None:
    ask = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    with served(tmp_path) as url, httpx.Client(base_url=url) as client:
        assert client.post("/mcp", json=ask).status_code == 401
        foreign = {**bearer(), "host": "evil.example"}
        assert client.post("/mcp", json=ask, headers=foreign).status_code == 421
        foreign = {**bearer(), "origin": "https://evil.example"}
        assert client.post("/mcp", json=ask, headers=foreign).status_code == 403
        assert client.get("/.well-known/oauth-protected-resource").status_code == 404
