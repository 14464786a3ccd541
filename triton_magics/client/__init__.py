"""A client of `triton-magics serve`, sync and async; needs httpx and pydantic only.

    from triton_magics.client import Client

    with Client("http://127.0.0.1:8000", token) as client:
        result = client.evaluate({"source_code": source, "kernel_type": "triton", "io": contract})
        print(result.status, result.kernel_exec_result.runtime)

A kernel that fails is a result. Every other refusal is an error:

ServerError
├─ Unauthorized       no token, a wrong one, or not a client of this server (401, 403, 421)
├─ RequestRefused     the request has faults, each with its field (400, 405, 413, 415, 422)
├─ NotFound           no such op, version or route (404)
│  └─ JobNotFound     no such job, or it is another client's
├─ StepRefused        the workflow does not allow it now (409)
├─ ServerBusy         too many jobs wait; also after all retries (429, 503)
└─ ConnectionLost     no answer
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

import httpx

from triton_magics.client.answers import (
    CONNECT_S,
    RETRIES,
    Call,
    KernelEvaluation,
    KernelExecution,
    RemoteJobView,
    kernels_call,
    read_job,
    result_of,
    retry_pause_s,
)
from triton_magics.client.job_events import JobEvents, ServedEvent
from triton_magics.client.server_errors import (
    ConnectionLost,
    JobNotFound,
    Json,
    NotFound,
    RequestRefused,
    ServerBusy,
    ServerError,
    StepRefused,
    Unauthorized,
    connection_lost,
)
from triton_magics.errors import BadValue

READ_S = 900.0  # a call that waits longer gives its job up; ask with wait=False then


class _Methods:
    """The calls of a server; `_send` performs one, now or as an awaitable."""

    def _send(self, call: Call) -> Any:
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
            kernels_call("evaluate", {"kernel": kernel, "reference": reference}, options, wait)
        )

    def validate(
        self, kernel: Json, reference: Json | None = None, *, wait: bool = True, **options: Any
    ) -> Any:
        """Compile and check a kernel; see `evaluate`."""
        return self._send(
            kernels_call("validate", {"kernel": kernel, "reference": reference}, options, wait)
        )

    def compare(
        self, ref_kernel: Json, custom_kernel: Json, *, wait: bool = True, **options: Any
    ) -> Any:
        """Check a kernel against another, and compare their times; see `evaluate`."""
        both = {"ref_kernel": ref_kernel, "custom_kernel": custom_kernel}
        return self._send(kernels_call("compare", both, options, wait))

    def perform(self, verb: str, *, wait: bool = True, **arguments: Any) -> Any:
        """Perform a verb in the server's workspace; a `RemoteJobView` with its value."""
        query = None if wait else {"wait": "false"}
        return self._send(Call("POST", f"/v1/{_path_part(verb)}", read_job, arguments, query))

    def health(self) -> Any:
        """Return the state of the server, a dictionary."""
        return self._send(Call("GET", "/health", dict))

    def stats(self) -> Any:
        """Return the server's figures since its start, a dictionary."""
        return self._send(Call("GET", "/stats", dict))

    def job(self, job_id: str) -> Any:
        """Return a `RemoteJobView`, of this server or an earlier one."""
        return self._send(Call("GET", f"/job/{_path_part(job_id)}", read_job))

    def jobs(self) -> Any:
        """Return the newest jobs of this client, each a `RemoteJobView`."""
        return self._send(
            Call("GET", "/jobs", lambda answer: tuple(map(read_job, answer.get("jobs", ()))))
        )

    def cancel(self, job_id: str) -> Any:
        """End a job, running or waiting; return it."""
        return self._send(Call("DELETE", f"/job/{_path_part(job_id)}", read_job))

    def cleanup_jobs(self, older_than_s: float = 300.0) -> Any:
        """Remove the jobs that ended so long ago; return how many."""
        body = {"older_than_s": older_than_s}
        return self._send(Call("POST", "/admin/cleanup-jobs", lambda a: a["removed"], body))


def _path_part(name: str) -> str:
    return quote(name, safe="")


def _options(url: str, token: str | None, transport: Any) -> dict[str, Any]:
    """Return the arguments of httpx's client.

    Raises:
        BadValue: the URL is none of a server.
    """
    if not re.fullmatch(r"https?://[^/?#]+(/[^?#]*)?", url):
        raise BadValue(f"url {url!r}: write scheme, host and port, such as http://127.0.0.1:8000")
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    timeout = httpx.Timeout(READ_S, connect=CONNECT_S)
    return {"base_url": url, "headers": headers, "timeout": timeout, "transport": transport}


class Client(_Methods):
    """A client that waits.

    Args:
        url: of the server.
        token: from its token file; None where it asks for none.
        transport: of httpx; by default a socket.
        sleep: pauses before a retry.

    Raises:
        BadValue: the URL is none of a server.
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        transport: httpx.BaseTransport | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._http = httpx.Client(**_options(url, token, transport))
        self._sleep = sleep

    def _send(self, call: Call) -> Any:
        for attempt in range(RETRIES + 1):
            try:
                response = self._http.request(
                    call.method, call.path, json=call.body, params=call.query
                )
            except httpx.TransportError as error:
                raise connection_lost(error, self._http.base_url) from error
            if response.status_code not in (429, 503) or attempt == RETRIES:
                break
            self._sleep(retry_pause_s(response, attempt))
        return result_of(call, response)

    def stream(self, job_id: str, after: int = 0) -> Iterator[ServedEvent]:
        """Yield the events of a job until its end; connect again where the connection is lost.

        Args:
            job_id: which.
            after: number of the last event that is known.

        Raises:
            ConnectionLost: the server did not come back.
        """
        following = JobEvents(job_id, after)
        while True:
            try:
                with self._http.stream(**following.request()) as response:
                    if response.is_success:
                        for chunk in response.iter_bytes():
                            yield from following.add(chunk)
                    else:
                        response.read()
                pause_s = following.pause_s(response)
            except httpx.TransportError as error:
                pause_s = following.pause_s(error)
            if following.has_ended:
                return
            self._sleep(pause_s)

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

    Raises:
        BadValue: the URL is none of a server.
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        transport: httpx.AsyncBaseTransport | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._http = httpx.AsyncClient(**_options(url, token, transport))
        self._sleep = sleep

    async def _send(self, call: Call) -> Any:
        for attempt in range(RETRIES + 1):
            try:
                response = await self._http.request(
                    call.method, call.path, json=call.body, params=call.query
                )
            except httpx.TransportError as error:
                raise connection_lost(error, self._http.base_url) from error
            if response.status_code not in (429, 503) or attempt == RETRIES:
                break
            await self._sleep(retry_pause_s(response, attempt))
        return result_of(call, response)

    async def stream(self, job_id: str, after: int = 0) -> AsyncIterator[ServedEvent]:
        """Yield the events of a job until its end; see `Client.stream`."""
        following = JobEvents(job_id, after)
        while True:
            try:
                async with self._http.stream(**following.request()) as response:
                    if response.is_success:
                        async for chunk in response.aiter_bytes():
                            for event in following.add(chunk):
                                yield event
                    else:
                        await response.aread()
                pause_s = following.pause_s(response)
            except httpx.TransportError as error:
                pause_s = following.pause_s(error)
            if following.has_ended:
                return
            await self._sleep(pause_s)

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
    "NotFound",
    "RemoteJobView",
    "RequestRefused",
    "ServedEvent",
    "ServerBusy",
    "ServerError",
    "StepRefused",
    "Unauthorized",
]
