"""Base of every value, the statuses of cases and jobs, and the names of ops and versions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict

from triton_magics.errors import BadName

SIZES = ("small", "medium", "large")  # of an op that names no others
CUSTOM_SIZE = "own"  # the size of a case whose shape the user set for the op
FILE_SIZE = "file"  # the size of inputs that were read from a file
_RESERVED_SIZES = (CUSTOM_SIZE, FILE_SIZE)
SLUGS = {1: "baseline", 2: "tiling", 3: "coalesced", 4: "optimized"}
REPR_CHARS = 200
REPR_ITEMS = 4
_SHAPE = re.compile(r"[0-9]{1,18}(?:x[0-9]{1,18})*")  # more digits are no extent
_SIZE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,31}")
_OP_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
_VERSION_NAME = re.compile(r"v([1-9][0-9]{0,3})(?:_([a-z0-9][a-z0-9_]{0,63}))?")

DeviceKind = Literal["gpu", "interpreter"]
Clock = Literal["gpu", "graph", "launch", "interpreter"]
"""Timed: a call on the GPU behind a gate, net; in a CUDA graph; with Python and launch."""


# Names that pydantic gives a model, which would fill the list of a completion.
_PYDANTIC_NAMES = {name for name in dir(BaseModel) if not name.startswith("_")}
_renderer: Callable[[Any], str | None] | None = None


def set_renderer(renderer: Callable[[Any], str | None]) -> None:
    """Set the function that writes a value as text; it returns None for a value without a view."""
    global _renderer  # noqa: PLW0603 (a worker has none)
    _renderer = renderer


class Value(BaseModel):
    """A frozen value; equal by content, safe to share, the same in JSON."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="strings")

    def evolve(self, **changes: Any) -> Self:
        """Return a copy with these fields changed, validated as a whole.

        Raises:
            ValueError: the copy breaks a rule of its type, or has no such field.
        """
        return self.model_validate({**self.__dict__, **changes})

    def to_dict(self) -> dict[str, Any]:
        """Return the value as JSON has it: dicts, lists, texts, numbers."""
        return self.model_dump(mode="json")

    def __str__(self) -> str:
        """Return the text that a terminal shows for the value, else its representation."""
        text = _renderer(self) if _renderer else None
        return repr(self) if text is None else text

    def __dir__(self) -> list[str]:
        """Return the names of the domain, for completion; those of pydantic work all the same."""
        return sorted(set(super().__dir__()) - _PYDANTIC_NAMES)

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        """Yield the fields that differ from their defaults; long ones abbreviated."""
        for name, field in type(self).model_fields.items():
            value = getattr(self, name)
            if field.is_required() or value != field.default:
                yield name, _abbreviate(value)


def _abbreviate(value: Any) -> Any:
    if isinstance(value, str):
        return value if len(value) <= REPR_CHARS else f"{value[:REPR_CHARS]}..."
    is_long = isinstance(value, tuple) and len(value) > REPR_ITEMS
    return _Abbreviation(f"<{len(value)} items>") if is_long else value


class _Abbreviation(str):
    """Text that is its own representation."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


class CaseStatus(StrEnum):
    """Status of one case after its run."""

    PASSED = "passed"
    WRONG_VALUES = "wrong_values"
    WRONG_SHAPE = "wrong_shape"
    WRONG_DTYPE = "wrong_dtype"
    WRONG_TYPE = "wrong_type"
    WRONG_DEVICE = "wrong_device"
    MUTATED_INPUT = "mutated_input"
    ALIASED = "aliased"
    OUT_OF_BOUNDS = "out_of_bounds"
    RACE = "race"
    STALE = "stale"
    NOT_TRITON = "not_triton"
    UNFINISHED_WORK = "unfinished_work"
    SIDE_EFFECT = "side_effect"
    TAMPERED = "tampered"
    REJECTED = "rejected"
    COMPILE_ERROR = "compile_error"
    RUNTIME_ERROR = "runtime_error"
    TIMEOUT = "timeout"
    CRASHED = "crashed"
    OUT_OF_MEMORY = "out_of_memory"
    INTERRUPTED = "interrupted"
    NOT_RUN = "not_run"

    @property
    def failed(self) -> bool:
        """True if this case speaks against the version."""
        return self not in (
            CaseStatus.PASSED, CaseStatus.REJECTED, CaseStatus.NOT_RUN, CaseStatus.INTERRUPTED
        )  # fmt: skip


class Status(StrEnum):
    """Status of a whole validation, benchmark or run."""

    PASSED = "passed"
    FAILED = "failed"
    REJECTED = "rejected"
    COMPILE_ERROR = "compile_error"
    RUNTIME_ERROR = "runtime_error"
    TIMEOUT = "timeout"
    CRASHED = "crashed"
    OUT_OF_MEMORY = "out_of_memory"
    NO_GPU = "no_gpu"
    UNAVAILABLE = "unavailable"
    INTERRUPTED = "interrupted"

    @property
    def failed(self) -> bool:
        """True if this speaks against the version; a job that could not be done does not."""
        return self not in (
            Status.PASSED, Status.NO_GPU, Status.UNAVAILABLE, Status.INTERRUPTED
        )  # fmt: skip


def check_op_name(name: str) -> str:
    """Return the op's name, if it can be a folder and a module.

    Raises:
        BadName: anything but `[a-z][a-z0-9_]*`, at most 64 characters.
    """
    if not _OP_NAME.fullmatch(name):
        raise BadName(
            f"{name!r} can't be an op: write lower-case letters, digits and _, a letter first "
            "(softmax, my_op), at most 64 characters"
        )
    return name


def check_size_name(name: object) -> str:
    """Return the name of a size, if it can be typed and is no shape.

    Raises:
        BadName: anything but a letter, then letters, digits, `_`, `.` and `-`, at most 32; or
            `own`, which a user's own shapes have.
    """
    if not isinstance(name, str) or not _SIZE_NAME.fullmatch(name) or name in _RESERVED_SIZES:
        raise BadName(
            f"{name!r} can't name a size: write a letter, then letters, digits, _, . and - "
            f"(small, decode-1); {' and '.join(_RESERVED_SIZES)} are taken"
        )
    return name


def parse_version(name: str) -> tuple[int, str | None]:
    """Return number and slug of a version name: `v2` -> (2, None), `v2_online` -> (2, 'online').

    Raises:
        BadName: not of that form.
    """
    match = _VERSION_NAME.fullmatch(name)
    if not match:
        raise BadName(f"{name!r} is not a version: write v1, v2_tiling or v5_any_name")
    return int(match[1]), match[2]


def is_version(name: str) -> bool:
    """Return True if a name has the form of a version's: `v2`, `v2_online`."""
    return _VERSION_NAME.fullmatch(name) is not None


def version_name(number: int, slug: str | None = None) -> str:
    """Return the whole name of a version: `v2_tiling`, `v5`."""
    slug = slug or SLUGS.get(number)
    return f"v{number}_{slug}" if slug else f"v{number}"


def short(version: str) -> str:
    """Return the short name of a version, `v2` for `v2_tiling`; other providers unchanged."""
    match = _VERSION_NAME.fullmatch(version)
    return f"v{match[1]}" if match else version


def shape_text(shape: Sequence[int]) -> str:
    """Return a shape as text, `257x1023`; a scalar's is `()`."""
    return "x".join(str(n) for n in shape) or "()"


def shape_of(text: str) -> tuple[int, ...] | None:
    """Return the shape (257, 1023) of `257x1023`; None where the text is no shape."""
    if not _SHAPE.fullmatch(text) or 0 in (shape := tuple(int(n) for n in text.split("x"))):
        return None
    return shape
