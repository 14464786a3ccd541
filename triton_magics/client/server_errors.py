"""Errors of the client; see `triton_magics.client`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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


class NotFound(ServerError):
    """There is no such op, version or route."""


class JobNotFound(NotFound):
    """There is no such job, or it is another client's."""


class StepRefused(ServerError):
    """The workflow does not allow this step now."""


class ServerBusy(ServerError):
    """Too many jobs wait, or the server is stopping."""


class ConnectionLost(ServerError):
    """The server did not answer."""


ERRORS: dict[int, type[ServerError]] = {
    400: RequestRefused, 401: Unauthorized, 403: Unauthorized, 404: NotFound,
    405: RequestRefused, 409: StepRefused, 413: RequestRefused, 415: RequestRefused,
    421: Unauthorized, 422: RequestRefused, 429: ServerBusy, 503: ServerBusy,
}  # fmt: skip


def error_of(status: int, body: Json) -> ServerError:
    """Return the error of a refusal.

    Args:
        status: code of the response.
        body: its JSON object.
    """
    kind = ERRORS.get(status, ServerError)
    return (JobNotFound if body.get("error") == "UnknownJob" else kind)(status, body)


def connection_lost(error: Exception, url: object) -> ConnectionLost:
    """Return the error of a request that got no answer."""
    reason = str(error) or type(error).__name__
    place = str(url).rstrip("/")
    return ConnectionLost(0, {"message": f"{place}: {reason}; does a server run there?"})
