"""Likely causes of a wrong output, as values; `rendering` writes them out."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from pydantic import model_validator

from triton_magics.model.base import Value
from triton_magics.model.case import UNALIGNED


class CauseCode(StrEnum):
    """Kind of a cause; the last seven are observations that name no fault."""

    RACE = "race"
    NOT_DETERMINISTIC = "not_deterministic"
    STALE_STATE = "stale_state"
    WRONG_STRIDE = "wrong_stride"
    MISSING_MASK = "missing_mask"
    WRONG_FILL = "wrong_fill"
    MISSING_MAXIMUM = "missing_maximum"
    CANCELLATION = "cancellation"
    LOWER_PRECISION = "lower_precision"
    CONSTANT_FACTOR = "constant_factor"
    LAST_BLOCK = "last_block"
    WRONG_FORMULA = "wrong_formula"
    PARTIAL_EXTENT = "partial_extent"
    INT_OVERFLOW = "int_overflow"
    NAN_LOST = "nan_lost"
    OUT_OF_BOUNDS = "out_of_bounds"
    OVERFLOW = "overflow"
    REACH = "reach"
    ZEROS = "zeros"
    UNSET_MEMORY = "unset_memory"
    UNWRITTEN = "unwritten"
    TEXT = "text"


def layout_text(tensor: str, layout: str | None) -> str:
    """Return what a tensor's layout showed: a wrong stride, or an alignment that is assumed."""
    if layout == UNALIGNED:
        return f"right where {tensor} is aligned, wrong where it is not: an alignment is assumed"
    return f"right where {tensor} is contiguous, wrong where {layout}: a wrong stride"


class Cause(Value):
    """A likely cause, or an observation where several causes are possible.

    Attributes:
        code: its kind.
        advice: code to write instead.
        file_line: of the fault, in the version's file; 1-based.
        cell_line: the same line in the cell.
        factor: by which every element is off.
        tensor: the input whose layout shows the fault.
        layout: of that input.
        dtype: with the precision of the error.
        as_if: the change of the reference that gives the version's output; completes "if …".
        evidence: what further calls showed; completes "likely: …".
        text: of a record that was written before causes were values.
    """

    code: CauseCode
    advice: str | None = None
    file_line: int | None = None
    cell_line: int | None = None
    factor: float | None = None
    tensor: str | None = None
    layout: str | None = None
    dtype: str | None = None
    as_if: str | None = None
    evidence: str | None = None
    text: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _convert_text(cls, value: Any) -> Any:
        return {"code": CauseCode.TEXT, "text": value} if isinstance(value, str) else value
