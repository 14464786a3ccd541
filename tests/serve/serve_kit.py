"""Helpers of the server's tests: a service over a scripted executor."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.fake_executor import FakeExecutor
from triton_magics import verbs
from triton_magics.config import Settings
from triton_magics.execution import Outcome
from triton_magics.lab import Lab
from triton_magics.serve.app import create_app
from triton_magics.serve.job_model import Caller
from triton_magics.serve.job_service import JobService
from triton_magics.serve.options import ServeOptions
from triton_magics.serve.served_job import ServedJob
from triton_magics.serve.tokens import Tokens

SOURCE = "import triton\n\n\ndef triton_softmax(x):\n    return x  # {}\n"
ANN, BEN = Caller("ann"), Caller("ben")


@contextmanager
def opened(path: Path, engine: FakeExecutor, **options: Any) -> Iterator[JobService]:
    """Give a service with softmax v1 written."""
    path.mkdir(parents=True, exist_ok=True)
    service = JobService(Lab(path, executor=engine, settings=Settings()), ServeOptions(**options))
    try:
        service.lab.kernel("softmax", "v1", SOURCE.format("v1"))
        yield service
    finally:
        service.close()


def submit(
    service: JobService, verb: str = "validate", caller: Caller = ANN, **arguments: Any
) -> ServedJob:
    """Submit a verb, by default the validation of softmax v1."""
    arguments = arguments or {"op": "softmax", "version": "v1"}
    loaded = verbs.load(verb)
    return service.submit(loaded, loaded.request.checked(arguments), caller)


class Gate:
    """Holds the jobs of an executor until it is opened, or the job is cancelled."""

    def __init__(self, engine: FakeExecutor) -> None:
        self.entered = threading.Event()
        self._open = threading.Event()
        self._cancelled = threading.Event()
        run = engine.run

        def hold(job: Any, **more: Any) -> Outcome:
            self.entered.set()
            self._open.wait(60)
            if self._cancelled.is_set():
                self._cancelled.clear()
                return Outcome(status="interrupted")
            return run(job, **more)

        def cancel() -> None:
            self._cancelled.set()
            self._open.set()

        engine.run = hold  # type: ignore[method-assign]
        engine.on_cancel = cancel

    def open(self) -> None:
        self._open.set()


# ------------------------------------------------------------------------------------------ HTTP

TOKENS = {"ann": "a" * 32, "ben": "b" * 32}
BASE = "http://127.0.0.1:8000"


def bearer(name: str = "ann") -> dict[str, str]:
    """Return the header with a client's token."""
    return {"Authorization": f"Bearer {TOKENS[name]}"}


def call(
    service: JobService, *requests: tuple[Any, ...], headers: dict[str, str] | None = None
) -> list[httpx.Response]:
    """Send requests one after the other: (method, path, body or None, further headers)."""
    transport = httpx.ASGITransport(create_app(service, Tokens(TOKENS)), raise_app_exceptions=False)

    async def send() -> list[httpx.Response]:
        base = bearer() if headers is None else headers
        async with httpx.AsyncClient(transport=transport, base_url=BASE, headers=base) as client:
            return [
                await client.request(method, path, json=body, headers=dict(*more))
                for method, path, body, *more in requests
            ]

    return asyncio.run(send())


class ServerProcess:
    """A real `triton-magics serve` in the interpreter, on a free port."""

    def __init__(self, folder: Path, *options: str) -> None:
        env = {**os.environ, "XDG_CONFIG_HOME": str(folder / "config"), "LOG_LEVEL": "INFO"}
        command = [sys.executable, "-m", "triton_magics", "serve", "--port", "0"]
        self.log = (folder / "log").open("w+")
        self.process = subprocess.Popen(
            [*command, "--workspace", str(folder), "--mode", "fastapi", *options],
            stderr=self.log, env=env, cwd=folder,
        )  # fmt: skip
        self.path = folder / "log"
        self.port = int(self._line("http").split(" ")[0].rpartition(":")[2])
        text = (folder / "config" / "triton-magics" / "tokens").read_text()
        self.headers = {"Authorization": f"Bearer {text.split()[1]}"}

    def _line(self, start: str) -> str:
        until = time.monotonic() + 60
        while time.monotonic() < until and self.process.poll() is None:
            for line in self.path.read_text().splitlines():
                if line.startswith(start):
                    return line
            self.process_wait(0.02)
        raise AssertionError(self.path.read_text())

    def process_wait(self, timeout_s: float) -> int | None:
        """Return the exit code; None where the process goes on."""
        try:
            return self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None

    def client(self) -> httpx.Client:
        return httpx.Client(
            base_url=f"http://127.0.0.1:{self.port}", headers=self.headers, timeout=60
        )

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=30)

    def send(self, data: bytes) -> bytes:
        """Send bytes; return all that comes until the server closes."""
        with self.connect() as connection:
            connection.sendall(data)
            return b"".join(iter(lambda: connection.recv(65536), b""))

    def records(self) -> list[dict[str, Any]]:
        """Return the whole lines of the log that are JSON."""
        lines = self.path.read_text().splitlines(keepends=True)
        return [json.loads(line) for line in lines if line[0] == "{" and line[-1] == "\n"]

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        self.log.close()
