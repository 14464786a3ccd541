"""Text of the likely cause of a wrong output."""

from __future__ import annotations

from triton_magics.model import EVERY_INPUT, Cause, CauseCode, layout_text
from triton_magics.rendering.views.words import join_parts

_TEXTS: dict[CauseCode, str] = {
    CauseCode.RACE: "a race: two programs access the same element",
    CauseCode.NOT_DETERMINISTIC: (
        "two calls on the same inputs differ by more than rounding: a race, memory that was not "
        "written, or state between calls"
    ),
    CauseCode.STALE_STATE: "a later call on the same inputs was wrong: state is kept between calls",
    CauseCode.MISSING_MASK: "a load without a mask reads past the tensor",
    CauseCode.WRONG_FILL: "`other=` is missing: the lanes past the end take part",
    CauseCode.MISSING_MAXIMUM: "exp overflows: subtract the row's maximum first",
    CauseCode.CANCELLATION: (
        "large means cancel: subtract the mean before squaring (two passes, or Welford)"
    ),
    CauseCode.LAST_BLOCK: "the last block ends too late or too early: check the mask and the grid",
    CauseCode.WRONG_FORMULA: "the formula differs from the reference's",
    CauseCode.PARTIAL_EXTENT: "a part of the elements is left out: check the loop and the grid",
    CauseCode.INT_OVERFLOW: "an integer has too few bits",
    CauseCode.NAN_LOST: "NaN or infinity of the inputs is lost",
    CauseCode.OUT_OF_BOUNDS: "a load or store goes outside its tensor",
    CauseCode.OVERFLOW: "an intermediate value overflows, or a divisor is 0",
    CauseCode.REACH: "elements of the inputs reach other elements of the output",
    CauseCode.ZEROS: "all wrong elements are zero",
    CauseCode.UNWRITTEN: (
        "no store writes these elements: check the grid, the loop, and the store's index and mask"
    ),
    CauseCode.UNSET_MEMORY: (
        "NaN from finite inputs: memory that was never written, or lies outside the tensor, has "
        "reached the output, or a divisor is 0"
    ),
}
_TEXTS_OF_CALLS = {
    CauseCode.STALE_STATE: "state is kept between calls",
    CauseCode.WRONG_STRIDE: "a wrong stride or index",
    CauseCode.MISSING_MASK: "a mask is missing",
    CauseCode.WRONG_FILL: "the lanes past the end take part, or are counted",
    CauseCode.WRONG_FORMULA: "the formula differs from the reference's",
    CauseCode.PARTIAL_EXTENT: "a part of the elements is left out",
    CauseCode.INT_OVERFLOW: "an integer has too few bits",
    CauseCode.OUT_OF_BOUNDS: "an access outside a tensor",
    CauseCode.OVERFLOW: "an intermediate value overflows, or a divisor is 0",
}
_OBSERVATIONS = (
    CauseCode.OVERFLOW,
    CauseCode.REACH,
    CauseCode.CONSTANT_FACTOR,
    CauseCode.ZEROS,
    CauseCode.UNSET_MEMORY,
    CauseCode.UNWRITTEN,
    CauseCode.NOT_DETERMINISTIC,
)


def cause_text(cause: Cause, place: str | None = None) -> str:
    """Return `likely: a load without a mask reads past the tensor · cell line 9 · file line 11`.

    Args:
        cause: the likely cause.
        place: file and line, in place of the file's line alone.
    """
    lead = "observed" if cause.code in _OBSERVATIONS else "likely"
    cell = f"cell line {cause.cell_line}" if cause.cell_line else None
    file = place or (f"file line {cause.file_line}" if cause.file_line else None)
    return f"{lead}: {join_parts((_text(cause), cell, file))}"


def _text(cause: Cause) -> str:
    if cause.as_if and cause.file_line and cause.code in _TEXTS:
        return f"{_TEXTS[cause.code].partition(': ')[0]}: {cause.as_if}"
    if cause.as_if:
        return f"the output is that of the reference if {cause.as_if}"
    if cause.code is CauseCode.REACH and cause.evidence:
        return cause.evidence
    if cause.evidence:
        return f"{_TEXTS_OF_CALLS[cause.code]}: {cause.evidence}"
    if cause.code is CauseCode.TEXT:
        return cause.text or ""
    if cause.code is CauseCode.CONSTANT_FACTOR:
        return f"every element is {cause.factor or 0:.4g} times the expected value"
    if cause.code is CauseCode.WRONG_STRIDE:
        name = "the inputs" if cause.tensor in (None, EVERY_INPUT) else cause.tensor
        return layout_text(name, cause.layout)
    if cause.code is CauseCode.LOWER_PRECISION:
        return f"the error is that of a lower precision ({cause.dtype})"
    return _TEXTS[cause.code]
