"""One tool of the MCP server: its arguments, their schema, and what a call says. Knows no SDK.

A tool's arguments are the fields of its verb's request, under the names by which programs know
them. `op` and `version` may be left out of any call: the session's current ones stand for them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from pydantic.fields import FieldInfo

from triton_magics import verbs
from triton_magics.errors import did_you_mean
from triton_magics.model import shape_of
from triton_magics.verbs._arguments import split_commas
from triton_magics.verbs._base import Request, Verb, args_of

DEFAULTED = ("op", "version", "size")  # a session knows the op and version; the size is large


class NoRequest(Request):
    """No arguments."""


@dataclass(frozen=True)
class Tool:
    """One tool.

    Attributes:
        name: of the tool.
        help: one sentence for the model that chooses it; by default that of the verb.
        verb: name of the verb that it calls; empty: it is the server's own.
        request: the parameters of a tool of the server's own.
        fixed: fields of the verb's request that the tool sets.
        rename: field -> the name that programs know it by.
        hide: fields that make no sense in a call of a program.
        needs: fields that the tool requires, although the verb does not.
        single: fields that are lists, of which the tool takes one member.
        also: further names of arguments that are taken, and not listed.
        reads_only: it changes nothing.
        idempotent: a second call with the same arguments changes nothing more.
    """

    name: str
    help: str = ""
    verb: str = ""
    request: type[Request] = NoRequest
    fixed: Mapping[str, object] = field(default_factory=dict)
    rename: Mapping[str, str] = field(default_factory=dict)
    hide: Sequence[str] = ()
    needs: Sequence[str] = ()
    single: Sequence[str] = ()
    also: Mapping[str, str] = field(default_factory=dict)
    reads_only: bool = False
    idempotent: bool = False

    @cached_property
    def of_verb(self) -> Verb | None:
        """The verb that it calls; None for a tool of the server's own."""
        return verbs.load(self.verb) if self.verb else None

    @property
    def fields(self) -> dict[str, FieldInfo]:
        """The request's fields that a caller can set, by their own names."""
        request = self.of_verb.request if self.of_verb else self.request
        return {
            name: info
            for name, info in request.model_fields.items()
            if name not in self.fixed
            and name not in self.hide
            and all(arg.kind != "python" and not arg.is_local for arg in args_of(info))
        }

    @property
    def reads_files(self) -> bool:
        """True if it reads files of the server's machine: not for clients on another one."""
        return self.of_verb is not None and self.of_verb.reads_files

    @property
    def can_wait(self) -> bool:
        """True if the caller can say how long to wait for its result."""
        return self.of_verb is not None and self.of_verb.long_running

    @cached_property
    def description(self) -> str:
        """One sentence for the model that chooses it."""
        return self.help or (self.of_verb.help if self.of_verb else "")

    @property
    def listed_schema(self) -> dict[str, Any]:
        """The schema as clients read it: shapes are texts, and what is rarely set is left out."""
        text = {"type": "array", "items": {"type": "string"}, "description": "such as 257x1023"}
        properties = {
            name: text if is_list_of_shapes(each) else each
            for name, each in self.input_schema["properties"].items()
            if self.of_verb is None or self._is_listed(name)
        }
        return {**self.input_schema, "properties": properties}

    def _is_listed(self, name: str) -> bool:
        return name not in _UNLISTED and (name != "wait_s" or self.name in _LISTS_WAIT)

    @cached_property
    def input_schema(self) -> dict[str, Any]:
        """JSON schema of its arguments; short, as every client pays for it in each session."""
        request = self.of_verb.request if self.of_verb else self.request
        schemas = request.model_json_schema()["properties"] if request.model_fields else {}
        properties = {
            self.name_of(name): _short_schema(
                self.name_of(name), schemas[name], single=name in self.single
            )
            for name in self.fields
        }
        if self.can_wait:
            properties["wait_s"] = {"type": "number"}
        required = [
            self.name_of(name)
            for name, info in self.fields.items()
            if (name in self.needs or info.is_required()) and self.name_of(name) not in DEFAULTED
        ]
        schema: dict[str, Any] = {"type": "object", "properties": properties}
        return {**schema, "required": required} if required else schema

    def name_of(self, field_name: str) -> str:
        """Return the name by which a caller knows a field."""
        return self.rename.get(field_name, field_name)

    def sort(self, arguments: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
        """Return a call's arguments by the names of the request's fields, and all faults of names.

        An argument that is unknown, or given twice under two names, is a fault and no value.
        """
        to_field = {self.name_of(name): name for name in self.fields}
        to_field |= {name: name for name in self.fields} | dict(self.also)
        listed = self.input_schema["properties"]
        values: dict[str, Any] = {}
        faults: list[str] = []
        unknown: list[str] = []
        for name, value in arguments.items():
            if name not in to_field:
                hint = did_you_mean(name, listed)
                unknown.append(f"{self.name} has no argument {name!r}{hint and '.'}{hint}")
            elif to_field[name] in values:
                faults.append(f"{name} is given twice: it is another name of {to_field[name]}")
            else:
                typed = _as_typed(listed[self.name_of(to_field[name])], value)
                values[to_field[name]] = [typed] if to_field[name] in self.single else typed
        if unknown:
            unknown[-1] = f"{unknown[-1].rstrip('.')}. It has {', '.join(listed)}".replace(
                "?.", "?"
            )
        return values, unknown + faults

    def read(self, values: Mapping[str, Any]) -> Request:
        """Return the checked request of these fields.

        Raises:
            UserError: names every value that is not allowed, and what is.
        """
        if self.of_verb is None:
            return self.request.checked(values)
        return self.of_verb.request.checked({**self.fixed, **values})


# -------------------------------------------------------------------------------- short schemas

_UNLISTED = (  # taken all the same
    "again", "at_once", "budget", "census", "hot", "no_shapes", "only", "runs", "seed", "timeout",
    "timer",
)  # fmt: skip
_LISTS_WAIT = ("validate_correctness", "benchmark_kernel")
_WORDLESS = (
    "after", "atol", "attempt", "before", "cancel", "dtype", "hot", "job_id", "max_chars", "op",
    "ptx", "reset", "rtol", "runs", "sass", "seed", "size", "sizes", "timeout", "version",
    "versions",
)  # fmt: skip
MAX_DESCRIPTION = 36
_PAUSES = (": ", ", ", " (")
_KEPT = ("type", "items", "enum", "properties", "required")


def _short_schema(name: str, schema: Mapping[str, Any], *, single: bool) -> dict[str, Any]:
    """Return the type, its choices, and a description where the name does not say enough."""
    plain = _plain_schema(schema)
    plain = plain["items"] if single else plain
    is_clear = name in _WORDLESS or "enum" in plain
    text = "" if is_clear else _first_words(schema.get("description", ""))
    return {**plain, "description": text} if text else plain


def is_list_of_shapes(schema: Mapping[str, Any]) -> bool:
    """Return whether the schema is that of a list of lists."""
    return bool("items" in schema.get("items", {}))


def _first_words(text: str) -> str:
    """Return a description up to its first pause after which it would be long."""
    text = text.partition("; ")[0]
    while len(text) > MAX_DESCRIPTION and (ends := [text.rfind(mark) for mark in _PAUSES]):
        if max(ends) < 0:
            break
        text = text[: max(ends)]
    return text.rpartition("(")[0].rstrip() if text.count("(") > text.count(")") else text


def _plain_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema without titles, bounds, defaults and null, which the server checks."""
    members = [each for each in schema.get("anyOf", ()) if each.get("type") != "null"]
    if members:
        return _plain_schema(members[0])
    plain = {key: value for key, value in schema.items() if key in _KEPT}
    if "items" in plain:
        plain["items"] = _plain_schema(plain["items"])
    if "enum" in plain:
        plain.pop("type", None)
    return plain


def _as_typed(schema: Mapping[str, Any], value: Any) -> Any:
    """Return a value in the type of its schema where a model wrote it as text."""
    kind = schema.get("type")
    if kind == "array":
        return _as_list(schema["items"], value)
    if isinstance(value, str) and kind in ("integer", "number", "boolean", "object"):
        try:
            return json.loads(value.lower() if kind == "boolean" else value)
        except ValueError:
            return value
    return value


def _as_list(items: Mapping[str, Any], value: Any) -> Any:
    """Return `float32,float16` as two words, `257x1023` as one shape, or as a list of one."""
    if isinstance(value, str) and items.get("type") == "integer":
        return shape_of(value) or value
    words = split_commas(value) if isinstance(value, str) else value
    if items.get("type") == "array" and isinstance(words, list | tuple):
        return [shape_of(word) or word if isinstance(word, str) else word for word in words]
    return words


__all__ = ["Tool", "is_list_of_shapes"]
