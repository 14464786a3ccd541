"""Attacks on a real server: raw requests, bombs, forged logs, floods; and how it ends."""

from __future__ import annotations

import json
import signal
import threading
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from tests.execution_kit import wait_until
from tests.fake_executor import FakeExecutor
from tests.serve.serve_kit import TOKENS, Gate, ServerProcess, opened, submit
from triton_magics.serve import guard, web_server
from triton_magics.serve.app import create_app
from triton_magics.serve.tokens import Tokens


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    process = ServerProcess(tmp_path_factory.mktemp("served"))
    yield process
    process.close()


def post(server: ServerProcess, path: str, body: Any, **headers: str) -> tuple[int, dict[str, Any]]:
    with server.client() as client:
        answer = client.post(path, json=body, headers=headers)
        return answer.status_code, answer.json()


def raw(server: ServerProcess, *lines: str, body: bytes = b"") -> bytes:
    head = [
        *lines,
        f"Authorization: {server.headers['Authorization']}",
        "Connection: close",
        "",
        "",
    ]
    return server.send("\r\n".join(head).encode("latin-1") + body)


@pytest.mark.parametrize(
    "lines",
    [
        ("Content-Length: 2", "Transfer-Encoding: chunked"),
        ("Content-Length: 2", "Content-Length: 3"),
        ("Host: evil.example",),
        ("Content-Length: +2",),
        ("Content-Length : 2",),
        ("X: a\rSmuggled: b",),
        ("Transfer-Encoding: xchunked",),
        ("Origin: https://evil.example", "Origin: http://localhost"),
    ],
)
def test_an_ambiguous_header_is_refused(server: ServerProcess, lines: tuple[str, ...]) -> None:
    start = ("POST /v1/status HTTP/1.1", "Host: 127.0.0.1", "Content-Type: application/json")
    answer = raw(server, *start, *lines, body=b"{}\r\n0\r\n\r\n")
    assert answer.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 501 "))
    assert answer.count(b"HTTP/1.1") == 1  # the rest is no second request


def test_a_large_body_without_a_length_is_refused(server: ServerProcess) -> None:
    start = ("POST /v1/status HTTP/1.1", "Host: 127.0.0.1", "Content-Type: application/json")
    chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
    answer = raw(server, *start, "Transfer-Encoding: chunked", body=chunk * 32 + b"1\r\n \r\n")
    assert answer.startswith(b"HTTP/1.1 413 ")


def test_a_compressed_bomb_is_not_unpacked(server: ServerProcess) -> None:
    bomb = zlib.compress(b" " * 50_000_000)
    for coding in ("deflate", "gzip"):
        with server.client() as client:
            kinds = {"Content-Type": "application/json", "Content-Encoding": coding}
            assert client.post("/v1/status", content=bomb, headers=kinds).status_code == 415


def test_a_page_of_another_site_can_do_nothing(server: ServerProcess) -> None:
    forms = ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data")
    page = {"Origin": "https://evil.example", "Cookie": "session=1"}
    with server.client() as client:
        for kind in forms:
            body = b'{"op": "softmax", "version": "v1"}'
            own = client.post("/v1/best", content=body, headers={**page, "Content-Type": kind})
            assert own.status_code == 403
            assert (
                client.post("/v1/best", content=body, headers={"Content-Type": kind}).status_code
                == 415
            )
        del client.headers["Authorization"]
        assert client.post("/v1/best", json={}, headers=page).status_code == 401


@pytest.mark.parametrize(
    "name",
    ["../../etc", "..%2f..", "a/b", "/etc/passwd", "softmax\x00", "--help", "a;b", "a" * 300],
)
def test_a_name_that_is_a_path_or_an_option_is_refused(server: ServerProcess, name: str) -> None:
    source = "def triton_softmax(x):\n    return x\n"
    for op, version in ((name, "v1"), ("softmax", name)):
        kernel = {"op": op, "version": version, "source": source, "compile": False}
        code, body = post(server, "/v1/kernel", kernel)
        assert code in (404, 422)
        assert "traceback" not in json.dumps(body).lower()
    with server.client() as client:
        assert client.get("/job/../../etc/passwd").status_code == 404
        assert client.get("/job/%2e%2e%2f%2e%2e%2fetc%2fpasswd").status_code == 404
    folder = server.path.parent
    assert {path.name for path in folder.iterdir()} <= {"config", "log", ".triton_magics", "logs"}


def test_no_text_of_a_client_forges_a_line_of_the_log(server: ServerProcess) -> None:
    forged = '{"level": "ERROR", "message": "forged"}'
    with server.client() as client:
        client.get(f"/x%0a{forged}")
        client.post("/v1/status", json={"op": f"x\n{forged}\n"}, headers={"X-Session-Id": "a b"})
    wait_until(lambda: any("\n" in record.get("path", "") for record in server.records()))
    assert "forged" not in [record["message"] for record in server.records()]
    assert server.headers["Authorization"].split()[1] not in server.path.read_text()


def test_a_bomb_of_fields_gets_a_short_answer(server: ServerProcess) -> None:
    body = {f"field{i}": i for i in range(50_000)}
    code, answer = post(server, "/v1/validate", body)
    assert (code, len(answer["validation_errors"])) == (422, 1)
    body = {f"field{i}": i for i in range(150)}
    code, answer = post(server, "/v1/validate", body)
    assert (code, len(answer["validation_errors"])) == (422, 50)
    assert answer["message"].startswith("152 faults")
    nested: Any = 1
    for _ in range(150):
        nested = {"a": nested}
    assert post(server, "/v1/validate", {"op": nested})[0] == 422
    number = b'{"op": ' + b"9" * 1_000_000 + b"}"
    with server.client() as client:
        kind = {"Content-Type": "application/json"}
        answer = client.post("/v1/validate", content=number, headers=kind)
        assert answer.status_code in (400, 422)
        assert len(answer.content) < 10_000


def test_an_unknown_field_of_an_answer_shows_no_path(server: ServerProcess) -> None:
    code, body = post(server, "/v1/validate", {"op": "softmax", "version": "v9"})
    assert code == 404
    assert str(server.path.parent) not in json.dumps(body)


# ------------------------------------------------------------------------- in this process


@pytest.fixture
def engine() -> FakeExecutor:
    return FakeExecutor()


class ThreadServer:
    """A real uvicorn in a thread, over a scripted executor."""

    def __init__(self, service: Any) -> None:
        app = create_app(service, Tokens(TOKENS))
        config = uvicorn.Config(
            app, port=0, http=web_server.PatientProtocol, ws="none", log_config=None
        )
        self.server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self.server.run, daemon=True)
        self._thread.start()
        started = threading.Event()
        while not self.server.started:
            started.wait(0.01)
        self.port = self.server.servers[0].sockets[0].getsockname()[1]

    def close(self) -> None:
        self.server.should_exit = self.server.force_exit = True
        self._thread.join(20)

    def connect(self) -> Any:
        import socket

        return socket.create_connection(("127.0.0.1", self.port), timeout=20)

    def request(self, method: str, path: str, body: bytes = b"") -> bytes:
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            f"Authorization: Bearer {TOKENS['ann']}\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        return head.encode() + body


def test_a_slow_header_and_a_slow_body_end(
    tmp_path: Path, engine: FakeExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web_server, "HEADER_S", 0.3)
    monkeypatch.setattr(guard, "BODY_S", 0.3)
    with opened(tmp_path, engine, mode="fastapi") as service:
        server = ThreadServer(service)
        try:
            with server.connect() as silent, server.connect() as slow, server.connect() as body:
                slow.sendall(b"GET /health HTTP/1.1\r\nHost: local")
                body.sendall(server.request("POST", "/v1/status", b"{}")[:-1])
                assert silent.recv(100) == b""  # closed
                assert slow.recv(100) == b""
                assert body.recv(100).startswith(b"HTTP/1.1 408 ")
        finally:
            server.close()


def test_a_client_that_goes_cancels_its_job_unless_wait_is_false(
    tmp_path: Path, engine: FakeExecutor
) -> None:
    body = b'{"op": "softmax", "version": "v1"}'
    with opened(tmp_path, engine, mode="fastapi") as service:
        server = ThreadServer(service)
        gate = Gate(engine)
        ended = threading.Semaphore(0)
        service.on_end.append(lambda view: ended.release())
        try:
            with server.connect() as client:
                client.sendall(server.request("POST", "/v1/validate", body))
                assert gate.entered.wait(20)
            assert ended.acquire(timeout=20)
            with server.connect() as client:
                client.sendall(server.request("POST", "/v1/validate?wait=false", body))
                assert client.recv(100).startswith(b"HTTP/1.1 202 ")
            assert ended.acquire(timeout=20)
            states = {view.state.value for view in service.newest(submit(service).caller)}
            assert {"cancelled", "completed"} <= states
        finally:
            server.close()


def test_a_flood_of_event_streams_is_bounded(tmp_path: Path, engine: FakeExecutor) -> None:
    with opened(tmp_path, engine, mode="fastapi", n_streams=2) as service:
        server, gate = ThreadServer(service), Gate(engine)
        job = submit(service)
        request = server.request("GET", f"/job/{job.id}/events")
        clients = [server.connect() for _ in range(3)]
        try:
            heads = []
            for client in clients:
                client.sendall(request)
                heads.append(client.recv(15))
            assert heads == [b"HTTP/1.1 200 OK"] * 2 + [b"HTTP/1.1 429 To"]
            clients[0].close()
            while not heads[-1].startswith(b"HTTP/1.1 200"):  # its place is free again
                with server.connect() as client:
                    client.sendall(request)
                    heads.append(client.recv(15))
            gate.open()
            text = b""
            while b"event: end" not in text:
                text += (part := clients[1].recv(65536))
                assert part
        finally:
            for client in clients:
                client.close()
            server.close()


# -------------------------------------------------------------------------------------- the end


def test_sigterm_ends_a_server_with_code_0(server: ServerProcess) -> None:
    with server.client() as client:
        assert client.get("/health").json()["status"] in ("ok", "warming")
    server.process.send_signal(signal.SIGTERM)
    assert server.process_wait(40) == 0
    assert "Traceback" not in server.path.read_text()
