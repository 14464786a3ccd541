"""Say what a field takes, in our words: pydantic's messages name Python's types and its checks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_SHOULD = re.compile(
    r"\w+ should (?:be |have )(?P<allowed>.*?)(?: after validation)?(?:, (?:not|got|unable) .*)?",
    re.S,
)
_BOUNDS = {"ge": "from", "gt": "above", "le": "up to", "lt": "below"}
_KINDS = {
    "bool": "true or false",
    "dict": "an object",
    "finite": "a number",
    "float": "a number",
    "int": "a whole number",
    "list": "a list",
    "mapping": "an object",
    "model": "an object",
    "string_type": "text",
    "tuple": "a list",
}


def describe_allowed(fault: Mapping[str, Any]) -> str:
    """Return what may stand in a field: `a whole number`, `a number from 1`, `a list`.

    Args:
        fault: an entry of `ValidationError.errors()`.
    """
    context, kind = fault.get("ctx", {}), str(fault["type"])
    if "expected" in context:
        return str(context["expected"]).replace(" or ", ", ")
    kind_text = next((text for name, text in _KINDS.items() if kind.startswith(name)), "")
    if limits := [f"{word} {context[key]:g}" for key, word in _BOUNDS.items() if key in context]:
        return " ".join([kind_text or "a number", *limits])
    if kind_text:
        return kind_text
    match = _SHOULD.fullmatch(str(fault["msg"]))
    return match["allowed"].replace("a valid ", "a ") if match else str(fault["msg"])


__all__ = ["describe_allowed"]
