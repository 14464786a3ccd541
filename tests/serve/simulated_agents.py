"""Programs that take an op through all states over plain HTTP or by text, and know only `next`."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Generator, Iterator, Mapping
from types import TracebackType
from typing import Any, Self

import httpx

CALL_S = 60.0  # as real clients give up
MAX_CALLS = 60
LAST = "get_best_kernel"
Call = tuple[str, dict[str, Any]]


def text_agent(op: str, sources: Iterator[str]) -> Generator[Call, str, None]:
    """Yield the calls of a program that reads text alone; takes the text of each answer.

    It does what the last line `next: tool(argument="value")` says, and has sources to write.
    """
    yield "get_overview", {}
    text = yield "get_torch_op_info", {"op": op}
    for _ in range(MAX_CALLS):
        tool, arguments = _call_in(text)
        if tool == "write_kernel_code":
            arguments["source"] = next(sources)
        text = yield tool, arguments
        if tool == LAST:
            return
    raise AssertionError(f"{MAX_CALLS} calls did not lead to the end: {text}")


def _call_in(text: str) -> Call:
    (line, *_) = re.findall(r"^next: (.*)$", text, re.M) or [f"no next call in {text!r}"]
    call = ast.parse(line, mode="eval").body
    assert isinstance(call, ast.Call), line
    assert isinstance(call.func, ast.Name), line
    return call.func.id, {str(each.arg): ast.literal_eval(each.value) for each in call.keywords}


def resume(agent: Generator[Call, str, None], text: str) -> Call | None:
    """Give an agent the answer to its call; return the next one, or None at the end."""
    try:
        return agent.send(text)
    except StopIteration:
        return None


class PlainMcp:
    """An MCP client of HTTP requests alone: no SDK, no progress, 60 s for a call.

    Args:
        url: of the server.
        headers: with the token.
        version: of the protocol: 2025-11-25 has a session, 2026-07-28 has none.
    """

    def __init__(self, url: str, headers: Mapping[str, str], version: str) -> None:
        accept = {"Accept": "application/json, text/event-stream"}
        self._http = httpx.Client(
            base_url=url, headers={**headers, **accept, "MCP-Protocol-Version": version},
            timeout=CALL_S,
        )  # fmt: skip
        self._version, self._n = version, 0
        self._has_session = version < "2026"
        self.tools: list[str] = []
        if self._has_session:
            info = {"name": "plain", "version": "1"}
            hello = {"protocolVersion": version, "capabilities": {}, "clientInfo": info}
            assert self.request("initialize", hello)["protocolVersion"] == version
            note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
            assert self._http.post("/mcp", json=note).status_code == 202

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._http.close()

    def request(self, method: str, params: Mapping[str, Any], name: str = "") -> dict[str, Any]:
        """Return the result of a request."""
        self._n += 1
        params, headers = dict(params), {}
        if not self._has_session:
            prefix = "io.modelcontextprotocol"
            params["_meta"] = {
                f"{prefix}/protocolVersion": self._version, f"{prefix}/clientCapabilities": {},
                f"{prefix}/clientInfo": {"name": "plain", "version": "1"},
            }  # fmt: skip
            headers = {"Mcp-Method": method, **({"Mcp-Name": name} if name else {})}
        body = {"jsonrpc": "2.0", "id": self._n, "method": method, "params": params}
        answer = self._http.post("/mcp", json=body, headers=headers)
        assert answer.status_code == 200, answer.text
        if session := answer.headers.get("mcp-session-id"):
            self._http.headers["mcp-session-id"] = session
        if answer.headers["content-type"].startswith("application/json"):
            messages = [answer.json()]
        else:
            lines = re.findall(r"^data: (\{.*)$", answer.text, re.M)
            messages = [json.loads(line) for line in lines]
        (message,) = messages  # no progress was asked for
        assert message["id"] == self._n
        return message["result"]

    def call(self, tool: str, arguments: Mapping[str, Any]) -> str:
        """Call a tool; return the text of its answer."""
        self.tools.append(tool)
        result = self.request("tools/call", {"name": tool, "arguments": arguments}, tool)
        return "".join(each["text"] for each in result["content"] if each["type"] == "text")

    def follow(self, agent: Generator[Call, str, None]) -> list[str]:
        """Carry out what an agent asks for; return the texts that it got."""
        texts: list[str] = []
        call: Call | None = next(agent)
        while call:
            texts.append(self.call(*call))
            call = resume(agent, texts[-1])
        return texts


def drive_rest(client: httpx.Client, op: str, sources: Iterator[str]) -> list[dict[str, Any]]:
    """Take an op to its end by the steps that REST names; return the values of all answers."""
    values: list[dict[str, Any]] = []

    def post(verb: str, body: Mapping[str, Any]) -> dict[str, Any]:
        answer = client.post(f"/v1/{verb}", json=body)
        assert answer.status_code == 200, answer.text
        values.append(answer.json()["value"])
        return values[-1]

    post("op", {"op": op})
    for _ in range(MAX_CALLS):
        step = post("status", {"op": op})["next_step"]
        body = step["arguments"] | ({"source": next(sources)} if step["verb"] == "kernel" else {})
        post(step["verb"], body)
        if step["verb"] == "best":
            return values
    raise AssertionError(f"{MAX_CALLS} calls did not lead to the end")
