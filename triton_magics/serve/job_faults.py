"""Errors of the engine as faults that a client can read: no traceback, no path of this machine."""

from __future__ import annotations

import logging
import re
import secrets
from typing import Any

from triton_magics.errors import (
    GpuLost,
    IllegalStep,
    QueueFull,
    TritonMagicsError,
    Unavailable,
    UnknownJob,
    UnknownOp,
    UnknownVersion,
    UserError,
    WorkerError,
)
from triton_magics.next_step import NextStep
from triton_magics.serve.job_model import JobFault

_PATH = re.compile(r"(?<![\w./:-])(?:/[\w.+@~-]+)+/([\w.+@~-]+)")
_LOG = logging.getLogger("triton_magics.serve")
_CODES: tuple[tuple[type[BaseException], int], ...] = (
    (UnknownJob, 404),
    (UnknownOp, 404),
    (UnknownVersion, 404),
    (IllegalStep, 409),
    (QueueFull, 429),
    (Unavailable, 503),
    (UserError, 422),
    (GpuLost, 503),
    (WorkerError, 503),
)


def fault_of(error: BaseException) -> JobFault:
    """Return the fault of an error; an unexpected one is logged, and named by an id only."""
    http = next((code for kind, code in _CODES if isinstance(error, kind)), 500)
    if not isinstance(error, TritonMagicsError):
        name = f"e_{secrets.token_hex(6)}"
        _LOG.error("internal error", exc_info=error, extra={"error_id": name})
        return JobFault(error="InternalError", message=f"internal error {name}", http=500)
    step = next_of(getattr(error, "next_step", None))
    message = hide_paths(str(error))
    return JobFault(error=type(error).__name__, message=message, next=step, http=http)


def hide_paths(text: str) -> str:
    """Return a text with the last part alone of each absolute path: clients are strangers."""
    return _PATH.sub(lambda match: f".../{match[1]}", text)


def next_of(step: NextStep | None) -> dict[str, Any] | None:
    """Return a next step as JSON: `{"verb": ..., "arguments": {...}}`."""
    return {"verb": step.verb, "arguments": dict(step.arguments)} if step else None


__all__ = ["fault_of", "hide_paths", "next_of"]
