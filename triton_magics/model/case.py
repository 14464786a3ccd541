"""A case of a validation: one concrete input."""

from __future__ import annotations

from typing import Any

from pydantic import model_validator

from triton_magics.model import older_records
from triton_magics.model.base import Value, shape_text

NORMAL = "normal"  # the regime of values as `make_inputs` returns them
PLAIN = "plain"  # no special values
BESIDE = "beside the design"  # the shape class of a case that is no combination
CONTIGUOUS = "contiguous"
UNALIGNED = "unaligned"  # the layout of which only the address is unusual
EVERY_INPUT = "*"  # in place of a name: all tensor inputs

Scalar = bool | int | float


class Case(Value):
    """One concrete input: the arguments of `make_inputs`, and the changes to its result.

    Attributes:
        size: `small`, `medium`, `large` or `own`; None for another shape.
        shape_class: kind of awkward shape, such as `one row`; empty for shapes that somebody named.
        extent: name of an extreme shape, such as `over 65,535 rows`; else empty.
        regime: scale of the values.
        special: structure in the values, such as a block of -inf; independent of the regime.
        layouts: (input, layout) of each tensor that is not contiguous; `*` is every tensor.
        scalars: (parameter, value) of each parameter that is not left to `make_inputs`.
    """

    shape: tuple[int, ...]
    dtype: str
    size: str | None = None
    shape_class: str = ""
    extent: str = ""
    regime: str = NORMAL
    special: str = PLAIN
    layouts: tuple[tuple[str, str], ...] = ()
    scalars: tuple[tuple[str, Scalar], ...] = ()
    seed: int

    @model_validator(mode="before")
    @classmethod
    def _convert_older(cls, value: Any) -> Any:
        return older_records.convert_case(value) if isinstance(value, dict) else value

    @property
    def label(self) -> str:
        """`small 256x256 float32`, `257x1023 float16, x10, y transposed, block of -inf`."""
        head = f"{self.size} " if self.size else ""
        return ", ".join([f"{head}{shape_text(self.shape)} {self.dtype}", *self.changes])

    @property
    def changes(self) -> tuple[str, ...]:
        """The differences from plain contiguous inputs, as text."""
        kinds = (self.regime if self.regime != NORMAL else "", *self._layout_texts)
        scalars = (f"{name}={value}" for name, value in self.scalars)
        special = self.special if self.special != PLAIN else ""
        return tuple(text for text in (*kinds, special, *scalars) if text)

    @property
    def _layout_texts(self) -> tuple[str, ...]:
        return tuple(
            layout if name == EVERY_INPUT else f"{name} {layout}" for name, layout in self.layouts
        )

    @property
    def has_plain_values(self) -> bool:
        """True if the values are those of `make_inputs`."""
        return self.regime == NORMAL and self.special == PLAIN

    @property
    def is_empty(self) -> bool:
        """True if a dimension has no length."""
        return 0 in self.shape

    @property
    def is_contiguous(self) -> bool:
        """True if every tensor is contiguous."""
        return not self.layouts

    def layout_of(self, name: str) -> str:
        """Return the layout of a tensor input."""
        layouts = dict(self.layouts)
        return layouts.get(name, layouts.get(EVERY_INPUT, CONTIGUOUS))
