"""Faults of a contract: each with its field, and all of them at once.

Pydantic checks a model's own rules only where every field is valid. `Part` runs its rules on the
raw value as well, so that one answer names every fault.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, NoReturn, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    ModelWrapValidatorHandler,
    ValidationError,
    model_validator,
)
from pydantic_core import InitErrorDetails, PydanticCustomError

from triton_magics.allowed_words import describe_allowed
from triton_magics.errors import BadContract, did_you_mean

Location = tuple[int | str, ...]


class ContractFault(NamedTuple):
    """One fault of a contract.

    Attributes:
        field: its place: `args[1].tensor_spec.dtype`; empty for the contract itself.
        message: the value, and the reason.
        allowed: what to write instead; empty where the message says it.
    """

    field: str
    message: str
    allowed: str = ""

    def __str__(self) -> str:
        """Return the fault in one line."""
        place = f"{self.field}: " if self.field else ""
        return f"{place}{self.message}" + (f"; write {self.allowed}" if self.allowed else "")


class Rule(NamedTuple):
    """A broken rule of a part: where, why, and what is allowed."""

    loc: Location
    message: str
    allowed: str = ""


class Part(BaseModel):
    """Base of a contract's values: frozen, without unknown fields, with all faults at once."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    @classmethod
    def find_broken_rules(cls, raw: Mapping[str, Any]) -> Iterator[Rule]:
        """Yield the broken rules between fields of a raw value, whose fields may be invalid."""
        yield from ()

    @model_validator(mode="wrap")
    @classmethod
    def _collect(cls, value: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        details: list[InitErrorDetails] = []
        result = None
        try:
            result = handler(value)
        except ValidationError as error:
            details = [_detail(cls, each) for each in error.errors(include_url=False)]
        if isinstance(value, Mapping):
            details += [_make_detail(*rule) for rule in cls.find_broken_rules(value)]
        if details:
            raise ValidationError.from_exception_data(cls.__name__, details)
        assert result is not None
        return result


def raise_bad_contract(error: ValidationError) -> NoReturn:
    """Raise all faults of a validation as one `BadContract`."""
    faults = list(dict.fromkeys(_fault(each) for each in error.errors(include_url=False)))
    raise BadContract("; ".join(map(str, faults)), faults=tuple(faults)) from None


def raise_if_any(faults: Iterator[ContractFault]) -> None:
    """Raise `BadContract` where there is a fault."""
    if every := tuple(faults):
        raise BadContract("; ".join(map(str, every)), faults=every)


def _fault(error: Any) -> ContractFault:
    field = ""
    for part in error["loc"]:
        field += f"[{part}]" if isinstance(part, int) else f".{part}" if field else part
    return ContractFault(field, error["msg"], error.get("ctx", {}).get("allowed", ""))


def _make_detail(
    loc: Location, message: str, allowed: str = "", value: Any = None
) -> InitErrorDetails:
    # The message is a parameter of its template, because it may hold braces.
    context = {"message": message, "allowed": allowed}
    custom = PydanticCustomError("contract", "{message}", context)
    return InitErrorDetails(type=custom, loc=loc, input=value)


def _detail(model: type[BaseModel], error: Any) -> InitErrorDetails:
    """Return an error of pydantic in our words; one of a nested part stays as it is."""
    loc, value, kind = error["loc"], error.get("input"), error["type"]
    context = error.get("ctx", {})
    if kind == "contract":
        return _make_detail(loc, context["message"], context["allowed"], value)
    if kind == "missing":
        return _make_detail(loc, "is missing", value=value)
    if kind == "extra_forbidden":
        names = tuple(model.model_fields)
        hint = did_you_mean(str(loc[-1]), names)
        return _make_detail(loc, f"no such field.{hint}", f"one of {', '.join(names)}", value)
    shown = repr(value)
    shown = shown if len(shown) <= 60 else f"{shown[:57]}..."
    return _make_detail(loc, f"{shown} is not allowed", describe_allowed(error), value)
