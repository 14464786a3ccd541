"""Requests of the client, and the values of their answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import httpx
from pydantic import BaseModel, ConfigDict

from triton_magics.client.server_errors import Json, error_of

RETRIES = 4
CONNECT_S = 10.0
LONGEST_PAUSE_S = 60.0


class Answer(BaseModel):
    """A JSON object of the server; further fields stay as they are."""

    model_config = ConfigDict(extra="allow", frozen=True)


class KernelExecution(Answer):
    """Outcome of one kernel; times in milliseconds, None where nothing was measured."""

    compiled: bool
    correctness: bool | None = None
    runtime: float | None = None
    compilation_error: str | None = None
    validation_error: str | None = None


class KernelEvaluation(Answer):
    """Answer to evaluate, compare and validate."""

    job_id: str = ""
    status: str
    kernel_exec_result: KernelExecution
    ref_runtime: float | None = None
    speedup: float | None = None
    badges: tuple[str, ...] = ()


class RemoteJobView(Answer):
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


class Call(NamedTuple):
    """A request, and the reader of its answer."""

    method: str
    path: str
    read: Callable[[dict[str, Any]], Any]
    body: Json | None = None
    query: Json | None = None


def read_evaluation(answer: dict[str, Any]) -> KernelEvaluation | RemoteJobView:
    """Return the result of an evaluation, or its job where that goes on."""
    return (
        KernelEvaluation.model_validate(answer)
        if "kernel_exec_result" in answer
        else read_job(answer)
    )


def read_job(answer: dict[str, Any]) -> RemoteJobView:
    """Return a job."""
    return RemoteJobView.model_validate(answer)


def kernels_call(name: str, kernels: Json, options: Json, wait: bool) -> Call:
    """Return the request of evaluate, compare or validate."""
    body = {key: value for key, value in {**kernels, **options}.items() if value is not None}
    query = None if wait else {"wait": "false"}
    return Call("POST", f"/{name}", read_evaluation, body, query)


def retry_pause_s(response: httpx.Response, attempt: int) -> float:
    """Return the pause that the server asks for, else one that doubles."""
    text = response.headers.get("retry-after", "")
    return min(float(text) if text.isdecimal() else 0.5 * 2**attempt, LONGEST_PAUSE_S)


def result_of(call: Call, response: httpx.Response) -> Any:
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
    detail = (body.get("fault") or body) if isinstance(body, dict) else {}
    raise error_of(response.status_code, detail)
