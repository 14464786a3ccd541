"""Turn pydantic's errors of a request into one error for the user."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

from annotated_types import Ge, Gt, Le, Lt

from triton_magics.allowed_words import describe_allowed
from triton_magics.errors import BadValue, UnknownName, UserError, did_you_mean
from triton_magics.exception_text import shorten

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError
    from pydantic.fields import FieldInfo
    from pydantic_core import ErrorDetails

_ALLOWED = {
    "string_type": "text",
    "bool_type": "True or False",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "finite_number": "a number",
    "tuple_type": "a shape such as '257x1023' or [257, 1023]",
    "sequence_str": "a list or a tuple",
    "is_instance_of": "a list or a tuple",
    "mapping_type": "a mapping such as {'BLOCK_SIZE': (256, 512)}",
}


def refusal(request: type[BaseModel], error: ValidationError) -> UserError:
    """Return one error that names every field with a fault, its value and what is allowed."""
    faults = [fault for _, fault in faults_by_field(request, error)]
    return faults[0] if len(faults) == 1 else BadValue("; ".join(map(str, faults)))


def faults_by_field(
    request: type[BaseModel], error: ValidationError
) -> tuple[tuple[str, UserError], ...]:
    """Return each field with a fault, `shapes[0]`, and the error that says what is allowed."""
    first: dict[object, ErrorDetails] = {}
    for fault in error.errors(include_url=False):
        first.setdefault(fault["loc"][0] if fault["loc"] else "", fault)
    return tuple(
        (_path(request, fault["loc"]) if fault["loc"] else "", _one(request, fault))
        for fault in first.values()
    )


def _one(request: type[BaseModel], fault: ErrorDetails) -> UserError:
    cause = fault.get("ctx", {}).get("error")
    if cause is not None and cause.args and isinstance(cause.args[0], UserError):
        return cause.args[0]
    name = _path(request, fault["loc"])
    if fault["type"] == "missing":
        return BadValue(f"{name} is missing")
    if fault["type"] == "extra_forbidden":
        parameters = request.model_fields
        hint = did_you_mean(name, parameters)
        return BadValue(f"no parameter {name!r}.{hint} There are {', '.join(parameters) or 'none'}")
    value = fault["input"]
    if fault["type"] == "literal_error":
        choices = _choices(request.model_fields[str(fault["loc"][0])])
        hint = did_you_mean(str(value), choices)
        return UnknownName(f"unknown {name} {value!r}.{hint} Known: {', '.join(choices)}")
    number = isinstance(value, int | float) and not isinstance(value, bool)
    shown = shorten(_text(value) if number else repr(value), 120)
    return BadValue(f"{name}={shown}: write {_allowed_values(request, fault)}")


def _path(request: type[BaseModel], loc: tuple[int | str, ...]) -> str:
    """Return `shapes[0]` of ("shapes", 0, ...), and `knobs.BLOCK` of a mapping's entry."""
    field = request.model_fields.get(str(loc[0]))
    if field is not None and len(loc) > 1 and "Mapping" in str(field.annotation):
        return f"{loc[0]}.{loc[1]}"
    index = next((f"[{part!r}]" for part in loc[1:] if isinstance(part, int)), "")
    return f"{loc[0]}{index}"


def _allowed_values(request: type[BaseModel], fault: ErrorDetails) -> str:
    field = request.model_fields[str(fault["loc"][0])]
    if bounds := _bounds(field):
        if any(getattr(each, "metavar", None) == "S" for each in field.metadata):
            return f"seconds, {bounds}"
        return f"{'a whole number' if 'int' in str(field.annotation) else 'a number'} {bounds}"
    if fault["type"] in ("greater_than_equal", "greater_than"):
        return "a whole number from 1"
    if fault["type"] == "less_than_equal":
        return f"a whole number up to {fault['ctx']['le']}"
    if fault["type"] == "too_long":
        return f"at most {fault['ctx']['max_length']} numbers"
    return _ALLOWED.get(fault["type"]) or describe_allowed(fault)


def _bounds(field: FieldInfo) -> str:
    """Return `from 0 to 3600` of the limits of a field."""
    limits = {type(each): each for each in field.metadata}
    words = [f"from {_text(limits[Ge].ge)}"] if Ge in limits else []
    words += [f"more than {_text(limits[Gt].gt)}"] if Gt in limits else []
    if Le in limits:
        words.append(f"{'and at most' if Gt in limits else 'to'} {_text(limits[Le].le)}")
    if Lt in limits:
        words.append(f"{'and' if Gt in limits else 'to'} below {_text(limits[Lt].lt)}")
    return " ".join(words)


def _text(number: Any) -> str:
    return f"{number:.17g}"


def _choices(field: FieldInfo) -> tuple[str, ...]:
    return tuple(str(each) for each in get_args(field.annotation))
