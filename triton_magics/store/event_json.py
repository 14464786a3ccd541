"""Parse events from the JSON of the store and the logs."""

from __future__ import annotations

import json
from typing import Any

from triton_magics.model import Event, older_records


def parse_event(text: str) -> Event:
    """Return the event of a line.

    A record of an older release may break a validation rule of this one; it is corrected first.

    Raises:
        ValueError: not an event.
    """
    try:
        return Event.model_validate_json(text)
    except ValueError as error:
        fields = _fields(text)
        if fields is None:
            raise
        corrected = older_records.correct_result(fields["result"])
        if corrected is fields["result"]:
            raise
        try:
            return Event.model_validate({**fields, "result": corrected})
        except ValueError:
            raise error from None


def _fields(text: str) -> dict[str, Any] | None:
    """Return the fields of an event with a result; None for any other text."""
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError):
        return None
    has_result = isinstance(fields, dict) and isinstance(fields.get("result"), dict)
    return fields if has_result else None
