"""Results as rows: for pandas, for a spreadsheet, for a test."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, cast

from triton_magics.errors import Unavailable

if TYPE_CHECKING:
    from triton_magics.model.base import Value


class Tabular:
    """A value one of whose fields has the rows of a table.

    Attributes:
        rows_of: name of that field.
    """

    rows_of: ClassVar[str]

    def to_records(self) -> list[dict[str, Any]]:
        """Return one flat dict per row; a nested field `case.shape` keeps its path as its name."""
        rows: tuple[Value, ...] = getattr(self, self.rows_of)
        return [dict(_flatten(row.to_dict())) for row in rows]

    def to_dataframe(self) -> Any:
        """Return the rows as a `pandas.DataFrame`.

        Raises:
            Unavailable: pandas is not installed.
        """
        try:
            import pandas as pd
        except ModuleNotFoundError:
            message = "to_dataframe needs pandas: pip install pandas; to_records() needs nothing"
            raise Unavailable(message) from None
        return pd.DataFrame.from_records(self.to_records())


def _flatten(fields: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in fields.items():
        if isinstance(value, dict) and value:
            yield from _flatten(cast("dict[str, Any]", value), f"{path}{name}.")
        else:
            yield f"{path}{name}", value
