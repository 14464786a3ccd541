"""JSON bodies in and out: requests with all their faults, answers and refusals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, get_args

from fastapi import Request as HttpRequest
from fastapi import Response
from pydantic import BaseModel, ValidationError
from pydantic_core import from_json, to_json

from triton_magics.allowed_words import describe_allowed
from triton_magics.errors import QueueFull, did_you_mean
from triton_magics.exception_text import shorten
from triton_magics.serve.job_faults import fault_of
from triton_magics.serve.job_model import Caller, JobFault, JobView

MAX_FIELDS = 200
MAX_FAULTS = 50  # that an answer lists
MAX_CHARS = 2_000  # of one message
MAX_SHOWN = 60  # characters of a value that is not allowed
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
        message = self.message.removesuffix(".")
        link = " Allowed:" if message.endswith("?") else ", only"
        allowed = f"{link} {self.allowed}" if self.allowed not in self.message else ""
        return f"{self.field}: {message}{allowed}".removeprefix(": ")


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
        raise BadRequest([_field_fault(kind, fault) for fault in error.errors()]) from None


def _field_fault(kind: type[BaseModel], fault: Any) -> FieldFault:
    """Return a fault in our words: the value, and what is allowed."""
    path, code = path_text(fault["loc"]), fault["type"]
    if code == "missing":
        return FieldFault(path, "is missing", code)
    if code == "extra_forbidden":
        names = _fields_at(kind, fault["loc"][:-1])
        hint = did_you_mean(str(fault["loc"][-1]), names)
        return FieldFault(path, f"no such field.{hint}", code, ", ".join(names))
    shown = shorten(repr(fault["input"]), MAX_SHOWN)
    return FieldFault(path, f"{shown} is not allowed", code, describe_allowed(fault))


def _fields_at(kind: type[BaseModel], path: Sequence[int | str]) -> tuple[str, ...]:
    """Return the fields of the model at a place in another."""
    for part in path:
        annotation = kind.model_fields[str(part)].annotation
        kinds = [annotation, *get_args(annotation)]
        kind = next(k for k in kinds if isinstance(k, type) and issubclass(k, BaseModel))
    return tuple(kind.model_fields)


def read_all(*reads: Callable[[], Any]) -> list[Any]:
    """Return what each function reads of one request.

    Raises:
        BadRequest: names the faults of all of them.
    """
    values, errors = [], []
    for read in reads:
        try:
            values.append(read())
        except BadRequest as error:
            errors.append(error)
    if errors:
        faults = [fault for error in errors for fault in error.faults]
        raise BadRequest(faults, errors[0].http)
    return values


def read_query(
    request: HttpRequest,
    name: str = "",
    is_allowed: Callable[[str], bool] = bool,
    allowed: str = "",
) -> str | None:
    """Return the one parameter of a query, or None; `token`, for Jupyter's proxy, is let through.

    Args:
        name: of the parameter; empty: there is none.
        is_allowed: checks its value.
        allowed: says what is allowed.

    Raises:
        BadRequest: its value is not allowed, or there are others.
    """
    unknown = [each for each in request.query_params if each not in (name, "token")]
    faults = [
        FieldFault(each, f"no such parameter.{did_you_mean(each, (name,))}", "extra_forbidden")
        for each in unknown
    ]
    text = request.query_params.get(name)
    if text is not None and not is_allowed(text):
        shown = shorten(repr(text), MAX_SHOWN)
        faults.append(FieldFault(name, f"{shown} is not allowed", allowed=allowed))
    if faults:
        raise BadRequest(faults)
    return text


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
