"""A client of `triton-magics serve`, sync and async; needs httpx and pydantic only.

    from triton_magics.client import Client

    with Client("http://127.0.0.1:8000", token) as client:
        result = client.evaluate({"source_code": source, "kernel_type": "triton", "io": contract})
        print(result.status, result.kernel_exec_result.runtime)

A kernel that fails is a result. Every other refusal is an error:

ServerError
├─ Unauthorized       no token, a wrong one, or not a client of this server (401, 403, 421)
├─ RequestRefused     the request has faults, each with its field (400, 405, 413, 415, 422)
├─ JobNotFound        no such job or route (404)
├─ StepRefused        the workflow does not allow it now (409)
├─ ServerBusy         too many jobs wait; also after all retries (429, 503)
└─ ConnectionLost     no answer
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from types import TracebackType
from typing import Any, NamedTuple, Self

import httpx
from pydantic import BaseModel, ConfigDict

RETRIES = 4
LONGEST_PAUSE_S = 60.0
CONNECT_S = 10.0
READ_S = 900.0  # a job may wait 300 s and run 600 s
Json = Mapping[str, Any]


class ServerError(Exception):
    """The server refused a request, or did not answer.

    Attributes:
        status: code of the response; 0 where there was none.
        error: kind of the error, as the server names it.
        faults: of the fields: `{"field": ..., "message": ...}`.
        next: the step to take, where there is one.
    """

    def __init__(self, status: int, body: Json) -> None:
        self.status = status
        self.error = str(body.get("error", ""))
        self.faults = tuple(body.get("validation_errors", ()))
        self.next = body.get("next")
        super().__init__(str(body.get("message") or self.error or f"HTTP {status}"))


class Unauthorized(ServerError):
    """No token, a wrong one, or a request that is not a client's."""


class RequestRefused(ServerError):
    """The request has faults; nothing ran."""


class JobNotFound(ServerError):
    """There is no such job, or it is another client's."""


class StepRefused(ServerError):
    """The workflow does not allow this step now."""


class ServerBusy(ServerError):
    """Too many jobs wait, or the server is stopping."""


class ConnectionLost(ServerError):
    """The server did not answer."""


_ERRORS: dict[int, type[ServerError]] = {
    400: RequestRefused, 401: Unauthorized, 403: Unauthorized, 404: JobNotFound,
    405: RequestRefused, 409: StepRefused, 413: RequestRefused, 415: RequestRefused,
    421: Unauthorized, 422: RequestRefused, 429: ServerBusy, 503: ServerBusy,
}  # fmt: skip


class _Answer(BaseModel):
    """A JSON object of the server; further fields stay as they are."""

    model_config = ConfigDict(extra="allow", frozen=True)


class KernelExecution(_Answer):
    """Outcome of one kernel; times in milliseconds, None where nothing was measured."""

    compiled: bool
    correctness: bool | None = None
    runtime: float | None = None
    compilation_error: str | None = None
    validation_error: str | None = None


class KernelEvaluation(_Answer):
    """Answer to evaluate, compare and validate."""

    job_id: str = ""
    status: str
    kernel_exec_result: KernelExecution
    ref_runtime: float | None = None
    speedup: float | None = None
    badges: tuple[str, ...] = ()


class RemoteJobView(_Answer):
    """A job; `value` is its result as JSON, `fault` says why there is none."""

    id: str | None = None
    title: str = ""
    state: str
    value: Any = None
    fault: dict[str, Any] | None = None

    @property
    def has_ended(self) -> bool:
        """True where it has a result, or a fault."""
        return self.state in ("completed", "failed", "cancelled", "timeout", "crashed")


class ServedEvent(NamedTuple):
    """An event of a job: `state`, `progress`, `output` or `partial`, and its data."""

    number: int
    kind: str
    data: dict[str, Any]


class _Call(NamedTuple):
    """A request, and the reader of its answer."""

    method: str
    path: str
    read: Callable[[dict[str, Any]], Any]
    body: Json | None = None
    query: Json | None = None


def _evaluation(answer: dict[str, Any]) -> KernelEvaluation | RemoteJobView:
    return (
        KernelEvaluation.model_validate(answer) if "kernel_exec_result" in answer else _job(answer)
    )


def _job(answer: dict[str, Any]) -> RemoteJobView:
    return RemoteJobView.model_validate(answer)


def _kernels(name: str, kernels: Json, options: Json, wait: bool) -> _Call:
    body = {key: value for key, value in {**kernels, **options}.items() if value is not None}
    query = None if wait else {"wait": "false"}
    return _Call("POST", f"/{name}", _evaluation, body, query)


def _pause_s(response: httpx.Response, attempt: int) -> float:
    """Return the pause that the server asks for, else one that doubles."""
    text = response.headers.get("retry-after", "")
    return min(float(text) if text.isdecimal() else 0.5 * 2**attempt, LONGEST_PAUSE_S)


def _result_of(call: _Call, response: httpx.Response) -> Any:
    """Return the value of a response.

    Raises:
        ServerError: it is a refusal.
    """
    try:
        body = response.json()
    except ValueError:
        body = {}
    has_result = isinstance(body, dict) and ("kernel_exec_result" in body or "state" in body)
    if response.is_success or (has_result and response.status_code in (409, 500)):
        return call.read(body)
    kind = _ERRORS.get(response.status_code, ServerError)
    detail = (body.get("fault") or body) if isinstance(body, dict) else {}
    raise kind(response.status_code, detail)


def _events(lines: list[str]) -> ServedEvent | None:
    """Return the event of the lines of a server-sent event; None for a heartbeat."""
    fields = dict(line.split(": ", 1) for line in lines if ": " in line and line[0] != ":")
    if "data" not in fields:
        return None
    number = fields.get("id", "0")
    data = json.loads(fields["data"])
    return ServedEvent(int(number) if number.isdecimal() else 0, fields.get("event", ""), data)


class _Methods:
    """The calls of a server; `_send` performs one, now or as an awaitable."""

    def _send(self, call: _Call) -> Any:
        raise NotImplementedError

    def evaluate(
        self, kernel: Json, reference: Json | None = None, *, wait: bool = True, **options: Any
    ) -> Any:
        """Compile, check and time a kernel; a job with `wait=False`.

        Args:
            kernel: `{"source_code": ..., "kernel_type": ..., "io": ..., "metadata": ...}`.
            reference: defines the right output, in the same form.
            wait: False: return the job at once.
            options: num_trials, num_warmup, rtol, atol, timeout, enable_device_metrics, timer.
        """
        return self._send(
            _kernels("evaluate", {"kernel": kernel, "reference": reference}, options, wait)
        )

    def validate(
        self, kernel: Json, reference: Json | None = None, *, wait: bool = True, **options: Any
    ) -> Any:
        """Compile and check a kernel; see `evaluate`."""
        return self._send(
            _kernels("validate", {"kernel": kernel, "reference": reference}, options, wait)
        )

    def compare(
        self, ref_kernel: Json, custom_kernel: Json, *, wait: bool = True, **options: Any
    ) -> Any:
        """Check a kernel against another, and compare their times; see `evaluate`."""
        both = {"ref_kernel": ref_kernel, "custom_kernel": custom_kernel}
        return self._send(_kernels("compare", both, options, wait))

    def perform(self, verb: str, *, wait: bool = True, **arguments: Any) -> Any:
        """Perform a verb in the server's workspace; a `RemoteJobView` with its value."""
        query = None if wait else {"wait": "false"}
        return self._send(_Call("POST", f"/v1/{verb}", _job, arguments, query))

    def health(self) -> Any:
        """Return the state of the server, a dictionary."""
        return self._send(_Call("GET", "/health", dict))

    def stats(self) -> Any:
        """Return the server's figures since its start, a dictionary."""
        return self._send(_Call("GET", "/stats", dict))

    def job(self, job_id: str) -> Any:
        """Return a `RemoteJobView`, of this server or an earlier one."""
        return self._send(_Call("GET", f"/job/{job_id}", _job))

    def jobs(self) -> Any:
        """Return the newest jobs of this client, each a `RemoteJobView`."""
        return self._send(
            _Call("GET", "/jobs", lambda answer: tuple(map(_job, answer.get("jobs", ()))))
        )

    def cancel(self, job_id: str) -> Any:
        """End a job, running or waiting; return it."""
        return self._send(_Call("DELETE", f"/job/{job_id}", _job))

    def cleanup_jobs(self, older_than_s: float = 300.0) -> Any:
        """Remove the jobs that ended so long ago; return how many."""
        body = {"older_than_s": older_than_s}
        return self._send(_Call("POST", "/admin/cleanup-jobs", lambda a: a["removed"], body))


def _options(token: str | None, transport: Any) -> dict[str, Any]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    timeout = httpx.Timeout(READ_S, connect=CONNECT_S)
    return {"headers": headers, "timeout": timeout, "transport": transport}


class Client(_Methods):
    """A client that waits.

    Args:
        url: of the server.
        token: from its token file; None where it asks for none.
        transport: of httpx; by default a socket.
        sleep: pauses before a retry.
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        transport: httpx.BaseTransport | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._http = httpx.Client(base_url=url, **_options(token, transport))
        self._sleep = sleep

    def _send(self, call: _Call) -> Any:
        for attempt in range(RETRIES + 1):
            try:
                response = self._http.request(
                    call.method, call.path, json=call.body, params=call.query
                )
            except httpx.TransportError as error:
                raise ConnectionLost(0, {"message": str(error) or type(error).__name__}) from error
            if response.status_code not in (429, 503) or attempt == RETRIES:
                break
            self._sleep(_pause_s(response, attempt))
        return _result_of(call, response)

    def stream(self, job_id: str, after: int = 0) -> Iterator[ServedEvent]:
        """Yield the events of a job until its end.

        Args:
            job_id: which.
            after: number of the last event that is known.
        """
        headers = {"Last-Event-ID": str(after)}
        with self._http.stream("GET", f"/job/{job_id}/events", headers=headers) as response:
            if not response.is_success:
                response.read()
                _result_of(_Call("GET", "", dict), response)
            lines: list[str] = []
            for line in response.iter_lines():
                lines, event = ([*lines, line], None) if line else ([], _events(lines))
                if event:
                    yield event

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.close()


class AsyncClient(_Methods):
    """A client whose methods are awaited; the same calls as `Client`.

    Args:
        url: of the server.
        token: from its token file; None where it asks for none.
        transport: of httpx; by default a socket.
        sleep: pauses before a retry.
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        transport: httpx.AsyncBaseTransport | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._http = httpx.AsyncClient(base_url=url, **_options(token, transport))
        self._sleep = sleep

    async def _send(self, call: _Call) -> Any:
        for attempt in range(RETRIES + 1):
            try:
                response = await self._http.request(
                    call.method, call.path, json=call.body, params=call.query
                )
            except httpx.TransportError as error:
                raise ConnectionLost(0, {"message": str(error) or type(error).__name__}) from error
            if response.status_code not in (429, 503) or attempt == RETRIES:
                break
            await self._sleep(_pause_s(response, attempt))
        return _result_of(call, response)

    async def stream(self, job_id: str, after: int = 0) -> AsyncIterator[ServedEvent]:
        """Yield the events of a job until its end; see `Client.stream`."""
        headers = {"Last-Event-ID": str(after)}
        async with self._http.stream("GET", f"/job/{job_id}/events", headers=headers) as response:
            if not response.is_success:
                await response.aread()
                _result_of(_Call("GET", "", dict), response)
            lines: list[str] = []
            async for line in response.aiter_lines():
                lines, event = ([*lines, line], None) if line else ([], _events(lines))
                if event:
                    yield event

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        await self.close()


__all__ = [
    "AsyncClient",
    "Client",
    "ConnectionLost",
    "JobNotFound",
    "KernelEvaluation",
    "KernelExecution",
    "RemoteJobView",
    "RequestRefused",
    "ServedEvent",
    "ServerBusy",
    "ServerError",
    "StepRefused",
    "Unauthorized",
]
