"""POST /evaluate, /compare, /validate, and the old form of a comparison at /."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from fastapi import FastAPI, Response
from fastapi import Request as HttpRequest

from triton_magics.serve.guide_requests import (
    CompareBody,
    EvaluateBody,
    LegacyBody,
    ValidateBody,
)
from triton_magics.serve.guide_run import evaluate
from triton_magics.serve.http_answers import (
    caller_of,
    json_answer,
    read_all,
    read_model,
    read_object,
)
from triton_magics.serve.job_model import Caller, JobPhase, JobView
from triton_magics.serve.job_service import JobService
from triton_magics.serve.rest import JobRoutes, read_wait
from triton_magics.serve.served_job import ServedJob

Body = type[EvaluateBody] | type[CompareBody]
BODIES: dict[str, Body] = {
    "evaluate": EvaluateBody,
    "compare": CompareBody,
    "validate": ValidateBody,
}
_DEPRECATED = {"Deprecation": "true", "Link": '</compare>; rel="successor-version"'}


def read_kernels(
    service: JobService, name: str, values: dict[str, Any]
) -> EvaluateBody | CompareBody:
    """Return the request of an evaluation.

    Args:
        service: its options limit the sources.
        name: `evaluate`, `compare` or `validate`.
        values: the JSON object of the request.

    Raises:
        BadRequest: names every field with a fault.
    """
    return BODIES[name].read(values, service.options.max_source_bytes)


def submit_kernels(
    service: JobService, name: str, request: EvaluateBody | CompareBody, caller: Caller
) -> ServedJob:
    """Queue an evaluation; its value is a `GuideResult`.

    Args:
        service: runs it.
        name: `evaluate`, `compare` or `validate`.
        request: checked.
        caller: whose job it is.

    Raises:
        QueueFull: too many jobs wait.
    """
    subject, _ = request.subjects.values()
    assert subject is not None
    return service.submit_call(
        partial(evaluate, service, request),
        title=f"{name} {subject.kernel_type} {subject.entry or ''}".strip(),
        verb=name,
        caller=caller,
        source=subject.source_code,
        run_s=2.0 * request.timeout + 60.0,
    )


class GuideRoutes:
    """The routes of the guide.

    Args:
        routes: submit and follow jobs.
    """

    def __init__(self, routes: JobRoutes) -> None:
        self._routes = routes

    def add_to(self, app: FastAPI) -> None:
        """Add the routes."""
        for name in BODIES:
            handle = partial(self.run, name)
            app.add_api_route(
                f"/{name}", _named(handle, name), methods=["POST"], name=name, summary=_HELP[name],
                response_class=Response,
            )  # fmt: skip
        app.add_api_route(
            "/", self.run_legacy, methods=["POST"], response_class=Response, deprecated=True
        )

    async def run(self, name: str, request: HttpRequest) -> Response:
        """Compile, validate and time the kernels of a request."""
        return await self._run(name, await read_object(request), request)

    async def run_legacy(self, request: HttpRequest) -> Response:
        """Compare, in the form of /compare or `{ref_code, custom_code, num_trials, timeout}`."""
        values = await read_object(request)
        if "ref_kernel" not in values:
            body, _ = read_all(lambda: read_model(LegacyBody, values), lambda: read_wait(request))
            values = body.as_compare()
        answer = await self._run("compare", values, request)
        answer.headers.update(_DEPRECATED)
        return answer

    async def _run(self, name: str, values: dict[str, Any], request: HttpRequest) -> Response:
        service = self._routes.service
        body, wait_s = await asyncio.to_thread(
            read_all,
            lambda: read_kernels(service, name, values),
            lambda: read_wait(request),
        )
        job = await asyncio.to_thread(submit_kernels, service, name, body, caller_of(request))
        view = await self._routes.follow(job, request, wait_s)
        return guide_answer(view)


def _named(handle: Any, name: str) -> Any:
    async def endpoint(request: HttpRequest) -> Response:
        answer: Response = await handle(request)
        return answer

    endpoint.__name__ = name
    return endpoint


_HELP = {
    "evaluate": "Compiles, validates and times a kernel.",
    "compare": "Compares a kernel with another: correctness, times, speedup.",
    "validate": "Compiles and validates a kernel.",
}


def guide_answer(view: JobView) -> Response:
    """Return the result: 200, also where the kernel failed; 500 where it crashed or timed out."""
    if not view.has_ended:
        return json_answer(view, 202, X_Job_Id=view.id)
    if view.value is None:
        status = view.fault.http if view.fault else 500
        body: dict[str, Any] = {"job_id": view.id, "status": view.state.value}
        if view.fault:
            body |= {"error": view.fault.error, "message": view.fault.message}
        return json_answer(body, status, X_Job_Id=view.id)
    ended_badly = view.state in (JobPhase.TIMEOUT, JobPhase.CRASHED)
    headers = {"X_Job_Id": view.id}
    if gpu := view.value["kernel_exec_result"]["metadata"].get("gpu_type"):
        headers["X_GPU_Type"] = gpu.encode("ascii", "replace").decode()
    return json_answer({**view.value, "job_id": view.id}, 500 if ended_badly else 200, **headers)


__all__ = ["BODIES", "GuideRoutes", "guide_answer", "read_kernels", "submit_kernels"]
