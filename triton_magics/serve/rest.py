"""REST: every verb under /v1, jobs, health and figures."""

from __future__ import annotations

from collections import Counter
from typing import Any

import anyio
from fastapi import FastAPI, Response
from fastapi import Request as HttpRequest
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import to_json
from starlette.exceptions import HTTPException

from triton_magics import verbs
from triton_magics.errors import QueueFull, TritonMagicsError, did_you_mean
from triton_magics.serve import following
from triton_magics.serve.http_answers import (
    BadRequest,
    FieldFault,
    caller_of,
    error_answer,
    fault_answer,
    job_answer,
    json_answer,
    read_all,
    read_model,
    read_object,
    read_query,
)
from triton_magics.serve.job_model import JobFault, JobView
from triton_magics.serve.job_service import JobService
from triton_magics.serve.known_names import find_unknown_names
from triton_magics.serve.served_job import ServedJob, as_json
from triton_magics.serve.server_stats import ServerStats, prometheus_text
from triton_magics.verbs._base import Request, Verb, args_of
from triton_magics.verbs._refusal import faults_by_field

MAX_WAIT_S = 3600.0
MAX_JOBS = 500
_FORMS = "'json', 'prometheus'"


class Cleanup(BaseModel):
    """Body of POST /admin/cleanup-jobs."""

    model_config = ConfigDict(extra="forbid", strict=True)

    older_than_s: float = Field(default=300.0, ge=0, le=10**9)


class JobRoutes:
    """The routes that submit and follow jobs.

    Args:
        service: runs the jobs.
    """

    def __init__(self, service: JobService) -> None:
        self.service = service
        self.stats = ServerStats(service)
        self._reads = anyio.CapacityLimiter(16)
        self._streams: Counter[str] = Counter()

    # ------------------------------------------------------------------------------------ verbs

    def _read_parameters(self, verb: Verb, values: dict[str, Any]) -> Request:
        """Return the request of a verb; one name that is unknown is left to the verb: a 404.

        Raises:
            BadRequest: names every field with a fault.
        """
        unknown = [
            FieldFault(field, str(error), type(error).__name__)
            for field, error in find_unknown_names(self.service.lab.session, verb, values)
        ]
        try:
            request = read_request(verb, values, self.service.options.max_source_bytes)
        except BadRequest as error:
            raise BadRequest([*error.faults, *unknown]) from None
        if len(unknown) > 1:
            raise BadRequest(unknown)
        return request

    async def perform(self, verb: Verb, request: HttpRequest) -> Response:
        """Perform a verb: at once, or as a job that the client waits for or asks for later."""
        values = await read_object(request)
        parameters, wait_s = await anyio.to_thread.run_sync(
            read_all,
            lambda: self._read_parameters(verb, values),
            lambda: read_wait(request),
            limiter=self._reads,
        )
        if not verb.is_queued:
            value = await anyio.to_thread.run_sync(
                self.service.perform, verb, parameters, limiter=self._reads
            )
            return json_answer({"id": None, "state": "completed", "value": as_json(value)})
        caller = caller_of(request)
        job = await anyio.to_thread.run_sync(self.service.submit, verb, parameters, caller)
        return job_answer(await self.follow(job, request, wait_s))

    async def follow(self, job: ServedJob, request: HttpRequest, wait_s: float | None) -> JobView:
        """Return a job at its end, or after so many seconds; a client that goes cancels it."""
        caller = caller_of(request)
        try:
            if wait_s != 0:
                await following.wait_for_end(job, request.receive, wait_s)
        except following.ClientDisconnected:
            self.service.cancel(job.id, caller)
        return self.service.find(job.id, caller)

    # ------------------------------------------------------------------------------------- jobs

    async def read_job(self, request: HttpRequest, job_id: str) -> Response:
        """Return a job; `?wait=20` waits so many seconds for its end, and cancels nothing."""
        wait_s = read_wait(request, default=0.0)
        caller = caller_of(request)
        view = self.service.find(job_id, caller)
        job = self.service.running(job_id, caller)
        if job and wait_s != 0:
            await following.wait_for_end(job, timeout_s=wait_s)
            view = self.service.find(job_id, caller)
        return json_answer(view, X_Job_Id=view.id)

    async def list_jobs(self, request: HttpRequest) -> Response:
        """Return the client's newest jobs, without their values; `?limit=50`."""
        limit = read_number(request, "limit", 50, MAX_JOBS)
        views = self.service.newest(caller_of(request), limit)
        return json_answer({"jobs": [view.model_dump(mode="json") for view in views]})

    async def cancel_job(self, request: HttpRequest, job_id: str) -> Response:
        """End a job, waiting or running; return it."""
        read_query(request)
        view = self.service.cancel(job_id, caller_of(request))
        return json_answer(view, X_Job_Id=view.id)

    async def stream_job(self, request: HttpRequest, job_id: str) -> Response:
        """Stream the events of a job: state, progress, output, partial results, then `end`."""
        after = read_number(request, "after", _last_event(request), 10**18)
        caller = caller_of(request)
        view = self.service.find(job_id, caller)
        job = self.service.running(job_id, caller)
        most = self.service.options.n_streams
        if self._streams[caller.name] >= most:
            raise QueueFull(f"{most} event streams are open already", retry_after_s=5)
        headers = {"X-Accel-Buffering": "no", "X-Job-Id": view.id}
        events = self._events(request, job, view, after)
        return StreamingResponse(events, media_type="text/event-stream", headers=headers)

    async def _events(
        self, request: HttpRequest, job: ServedJob | None, view: JobView, after: int
    ) -> Any:
        client = caller_of(request).name
        self._streams[client] += 1
        try:
            if job is None:  # of a server that has ended
                yield following.event_bytes("end", {"state": view.state.value}, after)
                return
            async for event in following.stream(job, after):
                yield event
        finally:
            self._streams[client] -= 1

    async def clean_up(self, request: HttpRequest) -> Response:
        """Remove the client's jobs that ended so many seconds ago."""
        values = await read_object(request)
        body, _ = read_all(lambda: read_model(Cleanup, values), lambda: read_query(request))
        removed = self.service.remove_ended(body.older_than_s, caller_of(request))
        return json_answer({"removed": removed})

    # ----------------------------------------------------------------------------------- server

    async def read_health(self, request: HttpRequest) -> Response:
        """Return whether jobs can run, the devices, the queue and the warm workers."""
        read_query(request)
        return json_answer(health(self.service))

    async def read_stats(self, request: HttpRequest) -> Response:
        """Return figures since the start; `?format=prometheus` gives text for a scraper."""
        form = read_query(request, "format", ("json", "prometheus").__contains__, _FORMS)
        figures = self.stats.as_json()
        if form == "prometheus":
            kind = "text/plain; version=0.0.4; charset=utf-8"
            return Response(prometheus_text(figures), media_type=kind)
        return json_answer(figures)


def health(service: JobService) -> dict[str, Any]:
    """Return the state of a server; never waits for a job."""
    lab = service.lab
    engine, devices = lab.engine_state(), lab.jobs.executor.devices()
    calls = lab.jobs.calls
    waiting = sum(call.state == "queued" for call in calls)
    status = "ok" if engine.standby_ready or len(calls) > waiting else "warming"
    fault = engine.missing or (service.warm_fault if status == "warming" else None)
    status = "unavailable" if fault else status
    return {
        "status": "stopping" if service.is_draining else status,
        "version": service.version,
        "gpus": [
            {"index": i, "name": device.name, "uuid": device.uuid}
            for i, device in enumerate(devices)
            if device.kind == "gpu"
        ],
        "device": engine.device,
        "queue": {
            "waiting": waiting,
            "running": len(calls) - waiting,
            "limit": service.options.n_waiting,
        },
        "standby": engine.standby_ready,
        "message": fault,
    }


# ------------------------------------------------------------------------------------ parameters


def read_request(verb: Verb, values: dict[str, Any], max_source_bytes: int) -> Request:
    """Return the request of a verb.

    Raises:
        BadRequest: names every field with a fault.
    """
    check_source("source", values.get("source"), max_source_bytes)
    for field in values.keys() & local_fields(verb):
        raise BadRequest([FieldFault(field, "a client can't name a file of the server", "path")])
    try:
        return verb.request.model_validate_json(to_json(values))
    except ValidationError as error:
        faults = faults_by_field(verb.request, error)
        raise BadRequest(
            [FieldFault(field, str(fault), type(fault).__name__) for field, fault in faults]
        ) from None


def local_fields(verb: Verb) -> set[str]:
    """Return the fields of a verb that name a file."""
    fields = verb.request.model_fields.items()
    return {name for name, field in fields if any(a.metavar == "FILE" for a in args_of(field))}


def check_source(field: str, source: Any, max_bytes: int) -> None:
    """Check the size of a kernel's source.

    Raises:
        BadRequest: it is too large.
    """
    if isinstance(source, str) and len(source.encode(errors="replace")) > max_bytes:
        raise BadRequest([FieldFault(field, f"a source may have {max_bytes} bytes", "too_long")])


def read_wait(request: HttpRequest, default: float | None = None) -> float | None:
    """Return the seconds of `?wait=20`; 0 for `false`, None (until the end) for `true`.

    Raises:
        BadRequest: it is something else.
    """
    allowed = f"true, false, or seconds to {MAX_WAIT_S:g}"
    text = read_query(request, "wait", _is_wait, allowed)
    if text is None or text == "true":
        return default if text is None else None
    return 0.0 if text == "false" else float(text)


def _is_wait(text: str) -> bool:
    try:
        return text in ("true", "false") or 0 <= float(text) <= MAX_WAIT_S
    except ValueError:
        return False


def read_number(request: HttpRequest, name: str, default: int, most: int) -> int:
    """Return a whole number of the query.

    Raises:
        BadRequest: it is none, or too large.
    """
    text = read_query(
        request,
        name,
        lambda text: _is_decimal(text, 19) and int(text) <= most,
        f"a whole number from 0 to {most}",
    )
    return default if text is None else int(text)


def _is_decimal(text: str, n_digits: int) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= n_digits


def _last_event(request: HttpRequest) -> int:
    """Return the number that a client sends when it connects again."""
    text = request.headers.get("last-event-id", "")
    return int(text) if _is_decimal(text, 18) else 0


# ---------------------------------------------------------------------------------------- routes


def add_routes(app: FastAPI, routes: JobRoutes, *, verbs_too: bool = True) -> None:
    """Add the routes of health, figures and jobs, and those that submit work."""
    for path, method, function in (
        ("/health", "GET", routes.read_health),
        ("/stats", "GET", routes.read_stats),
        ("/jobs", "GET", routes.list_jobs),
        ("/job/{job_id}", "GET", routes.read_job),
        ("/job/{job_id}", "DELETE", routes.cancel_job),
        ("/job/{job_id}/events", "GET", routes.stream_job),
        ("/admin/cleanup-jobs", "POST", routes.clean_up),
    ):
        app.add_api_route(path, function, methods=[method], response_class=Response)
    for verb in offered_verbs() if verbs_too else ():
        for name in (verb.name, *verbs.old_names(verb.name)):
            _add_verb(app, routes, verb, name)
    for kind in (BadRequest, TritonMagicsError, Exception):
        app.add_exception_handler(kind, _answer_error)
    app.add_exception_handler(HTTPException, _answer_no_route)


def offered_verbs() -> tuple[Verb, ...]:
    """Return the verbs that clients may call: those that read no file of this machine."""
    return tuple(verb for verb in verbs.every() if not verb.reads_files)


def _add_verb(app: FastAPI, routes: JobRoutes, verb: Verb, name: str) -> None:
    async def handle(request: HttpRequest) -> Response:
        return await routes.perform(verb, request)

    app.add_api_route(
        f"/v1/{name}", handle, methods=["POST"], name=name, summary=verb.help,
        response_class=Response, include_in_schema=name == verb.name,
    )  # fmt: skip


async def _answer_error(request: HttpRequest, error: Exception) -> Response:
    return error_answer(error)


async def _answer_no_route(request: HttpRequest, error: Exception) -> Response:
    """Refuse a path or a method that no route has; name the nearest, or those that it has."""
    assert isinstance(error, HTTPException)
    path, headers = request.url.path[:200], dict(error.headers or {})
    if allow := headers.get("allow") or headers.get("Allow"):
        fault = JobFault(error="WrongMethod", message=f"{path} takes {allow}", http=405)
        return fault_answer(fault, Allow=allow)
    hint = did_you_mean(path, {getattr(r, "path", "") for r in request.app.routes} - {""})
    return fault_answer(JobFault(error="NotFound", message=f"no route {path}.{hint}", http=404))


__all__ = ["JobRoutes", "add_routes", "offered_verbs"]
