"""JSON bodies in and out: requests with all their faults, answers and refusals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from fastapi import Request as HttpRequest
from fastapi import Response
from pydantic import BaseModel, ValidationError
from pydantic_core import from_json, to_json

from triton_magics.errors import QueueFull
from triton_magics.serve.job_faults import fault_of
from triton_magics.serve.job_model import Caller, JobFault, JobView

MAX_FIELDS = 200
MAX_FAULTS = 50  # that an answer lists
MAX_CHARS = 2_000  # of one message
T = TypeVar("T", bound=BaseModel)


@dataclass(frozen=True)
class FieldFault:
    """Fault of one field of a request.

    Attributes:
        field: its path, `kernel.io.args[1].name`; empty for the body as a whole.
        message: what is wrong with it.
        type: kind of the fault.
        allowed: what is allowed, where that can be listed.
    """

    field: str
    message: str
    type: str = "value_error"
    allowed: str = ""

    def __str__(self) -> str:
        """Return the path, what is wrong, and what is allowed."""
        allowed = f", only {self.allowed}" if self.allowed not in self.message else ""
        return f"{self.field}: {self.message}{allowed}".removeprefix(": ")


class BadRequest(Exception):
    """A request that is refused before anything runs, with every fault.

    Attributes:
        faults: of its fields.
        http: 400 where the body is not JSON, else 422.
    """

    def __init__(self, faults: Sequence[FieldFault], http: int = 422) -> None:
        super().__init__("; ".join(map(str, faults)))
        self.faults = tuple(faults)
        self.http = http


async def read_object(request: HttpRequest) -> dict[str, Any]:
    """Return the JSON object of a body; an empty body is an empty object.

    Raises:
        BadRequest: it is not a JSON object.
    """
    body = await request.body()
    if not body:
        return {}
    try:
        value = from_json(body, allow_inf_nan=False)
    except ValueError as error:
        raise BadRequest([FieldFault("", f"the body is not JSON: {error}", "json")], 400) from None
    if not isinstance(value, dict):
        raise BadRequest([FieldFault("", "the body must be a JSON object", "json")], 400)
    if len(value) > MAX_FIELDS:
        raise BadRequest([FieldFault("", f"a request has at most {MAX_FIELDS} fields", "too_long")])
    return value


def read_model(kind: type[T], values: dict[str, Any]) -> T:
    """Return the values as a model.

    Raises:
        BadRequest: names every field with a fault.
    """
    try:
        return kind.model_validate_json(to_json(values))
    except ValidationError as error:
        raise BadRequest([_field_fault(fault) for fault in error.errors()]) from None


def _field_fault(fault: Any) -> FieldFault:
    expected = fault.get("ctx", {}).get("expected", "")
    return FieldFault(path_text(fault["loc"]), fault["msg"], fault["type"], str(expected))


def path_text(path: Sequence[int | str]) -> str:
    """Return `args[1].tensor_spec.dtype` of ("args", 1, "tensor_spec", "dtype")."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".")


def caller_of(request: HttpRequest) -> Caller:
    """Return the client that the guard found."""
    caller: Caller = request.state.caller
    return caller


# --------------------------------------------------------------------------------------- answers


def json_answer(content: Any, status: int = 200, **headers: str) -> Response:
    """Return a response with a JSON body.

    Args:
        content: a model, or plain types; infinities and NaN become texts.
        status: code.
        headers: with `_` for `-`.
    """
    if isinstance(content, BaseModel):
        body = content.model_dump_json().encode()
    else:
        body = to_json(content, inf_nan_mode="strings")
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return Response(body, status, names, "application/json")


def job_answer(view: JobView) -> Response:
    """Return a job: 200 with its value, 202 before its end, the code of its fault."""
    status = 200 if view.fault is None else view.fault.http
    return json_answer(view, status if view.has_ended else 202, X_Job_Id=view.id)


def fault_answer(fault: JobFault, **headers: str) -> Response:
    """Return a refusal."""
    side = "client_error" if fault.http < 500 else "server_error"
    content: dict[str, Any] = {"error": fault.error, "message": fault.message, "status": side}
    if fault.next:
        content["next"] = fault.next
    return json_answer(content, fault.http, **headers)


def error_answer(error: Exception) -> Response:
    """Return the refusal of an error."""
    if isinstance(error, BadRequest):
        faults = [
            {k: v[:MAX_CHARS] for k, v in vars(fault).items() if v or k == "field"}
            for fault in error.faults[:MAX_FAULTS]
        ]
        count = "1 fault" if len(error.faults) == 1 else f"{len(error.faults)} faults"
        content = {
            "error": "BadRequest",
            "message": f"{count}: {error}"[:MAX_CHARS],
            "validation_errors": faults,
            "status": "client_error",
        }
        return json_answer(content, error.http)
    retry = {"Retry_After": str(error.retry_after_s)} if isinstance(error, QueueFull) else {}
    return fault_answer(fault_of(error), **retry)
