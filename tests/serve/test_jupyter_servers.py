"""Entry points of Jupyter's servers: a server on a unix socket, and tools that are off."""

from __future__ import annotations

import argparse
import inspect
import stat
import subprocess
import tomllib
from importlib import import_module
from pathlib import Path

import anyio
import httpx
import pytest

from tests.execution_kit import wait_until
from triton_magics.errors import BadValue
from triton_magics.serve import command, jupyter
from triton_magics.serve.mcp_tools import tools

ROOT = Path(__file__).parents[2]


def read(*words: str) -> command.ServeOptions:
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    return command.read_options(parser.parse_args(words))


def test_the_entry_points_lead_to_functions() -> None:
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
    for group in ("jupyter_serverproxy_servers", "jupyter_server_mcp.tools"):
        module, _, name = groups[group]["triton-magics"].partition(":")
        assert callable(getattr(import_module(module), name))


def test_jupyters_mcp_server_gets_no_tool_unless_it_is_turned_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert jupyter.mcp_tools() == []
    monkeypatch.setenv("TRITON_MAGICS_JUPYTER_MCP", "1")
    specs = [spec.rpartition(":")[2] for spec in jupyter.mcp_tools()]
    names = [getattr(jupyter, spec).__name__ for spec in specs]
    assert set(names) == {tool.name for tool in tools() if not tool.reads_files}
    for name in names:
        parameters = inspect.signature(getattr(jupyter, f"tool_{name}")).parameters
        tool = next(tool for tool in tools() if tool.name == name)
        assert set(parameters) == set(tool.listed_schema["properties"])
    with pytest.raises(AttributeError):
        _ = jupyter.no_such_tool


def test_a_tool_of_jupyters_mcp_server_answers_and_refuses(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TRITON_MAGICS_WORKSPACE", str(tmp_path))
    jupyter._toolbox.cache_clear()
    try:
        assert "softmax" in anyio.run(
            lambda: jupyter.tool_get_torch_op_info(op="softmax", shapes=None)
        )
        refused = anyio.run(lambda: jupyter.tool_source(op="softmax", version="v9"))
        assert refused.startswith("UnknownVersion: ")
    finally:
        jupyter._toolbox()[0].service.close()
        jupyter._toolbox.cache_clear()


def test_the_proxied_server_listens_for_its_user_alone(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    words = [each.format(unix_socket=path) for each in jupyter.proxied_server()["command"]]
    assert words[1:4] == ["-m", "triton_magics", "serve"]
    options = read(*words[4:])
    assert (options.unix_socket, options.token_file) == (path, None)
    for _ in range(2):  # a socket that an earlier server left is replaced
        with command._listen(options) as listener:
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            assert listener.getsockname() == str(path)
    (tmp_path / "file").touch()
    with pytest.raises(BadValue, match="--unix-socket .*Address already in use"):
        command._listen(read("--unix-socket", str(tmp_path / "file"), "--no-auth"))


@pytest.mark.slow
def test_a_real_server_answers_at_its_socket(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    words = [each.format(unix_socket=path) for each in jupyter.proxied_server()["command"]]
    process = subprocess.Popen(words, cwd=tmp_path, stderr=subprocess.DEVNULL)
    try:
        wait_until(path.exists, 60.0)
        with httpx.Client(transport=httpx.HTTPTransport(uds=str(path))) as client:
            assert client.get("http://localhost/health").status_code == 200
            evil = {"Origin": "http://evil.example"}
            assert client.get("http://localhost/health", headers=evil).status_code == 403
            assert client.get("http://evil.example/health").status_code == 421
    finally:
        process.terminate()
        assert process.wait(60) == 0
