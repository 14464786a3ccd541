"""What every value is, the two enums of how things end, and the names of things."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum
from typing import Literal

from pydantic import BaseModel, ConfigDict

from triton_magics.errors import BadName

SIZES = ("small", "medium", "large")
SLUGS = {1: "baseline", 2: "tiling", 3: "coalesced", 4: "optimized"}
_SHAPE = re.compile(r"[0-9]+(?:x[0-9]+)*")
_OP_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
_VERSION_NAME = re.compile(r"v([1-9][0-9]{0,3})(?:_([a-z0-9][a-z0-9_]{0,63}))?")

DeviceKind = Literal["gpu", "interpreter"]
Clock = Literal["gpu", "graph", "launch", "interpreter"]
"""What was timed: a call on the GPU behind a gate, net; in a CUDA graph; with Python and launch."""


class Value(BaseModel):
    """A frozen value; equal by content, safe to share, the same in JSON."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="strings")


class CaseStatus(StrEnum):
    """How one case ended."""

    PASSED = "passed"
    WRONG_VALUES = "wrong_values"
    WRONG_SHAPE = "wrong_shape"
    WRONG_DTYPE = "wrong_dtype"
    WRONG_TYPE = "wrong_type"
    WRONG_DEVICE = "wrong_device"
    MUTATED_INPUT = "mutated_input"
    ALIASED = "aliased"
    OUT_OF_BOUNDS = "out_of_bounds"
    STALE = "stale"
    NOT_TRITON = "not_triton"
    UNFINISHED_WORK = "unfinished_work"
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
        """Whether this case speaks against the version."""
        return self not in (
            CaseStatus.PASSED, CaseStatus.REJECTED, CaseStatus.NOT_RUN, CaseStatus.INTERRUPTED
        )  # fmt: skip


class Status(StrEnum):
    """How a whole validation, benchmark or run ended."""

    PASSED = "passed"
    FAILED = "failed"
    REJECTED = "rejected"
    COMPILE_ERROR = "compile_error"
    RUNTIME_ERROR = "runtime_error"
    TIMEOUT = "timeout"
    CRASHED = "crashed"
    OUT_OF_MEMORY = "out_of_memory"
    NO_GPU = "no_gpu"
    NO_TRITON = "no_triton"
    GPU_LOST = "gpu_lost"
    INTERRUPTED = "interrupted"

    @property
    def failed(self) -> bool:
        """Whether this speaks against the version; a job that could not be done does not."""
        return self not in (
            Status.PASSED, Status.NO_GPU, Status.NO_TRITON, Status.GPU_LOST, Status.INTERRUPTED
        )  # fmt: skip


def check_op_name(name: str) -> str:
    """The op's name, if it can be a folder and a module.

    Raises:
        BadName: anything but `[a-z][a-z0-9_]*`, at most 64 characters.
    """
    if not _OP_NAME.fullmatch(name):
        raise BadName(
            f"{name!r} can't be an op: write lower-case letters, digits and _, a letter first "
            "(softmax, my_op), at most 64 characters"
        )
    return name


def parse_version(name: str) -> tuple[int, str | None]:
    """Number and slug of a version name: `v2` -> (2, None), `v2_online` -> (2, 'online').

    Raises:
        BadName: not of that form.
    """
    match = _VERSION_NAME.fullmatch(name)
    if not match:
        raise BadName(f"{name!r} is not a version: write v1, v2_tiling or v5_any_name")
    return int(match[1]), match[2]


def is_version(name: str) -> bool:
    """Whether a name has the form of a version's: `v2`, `v2_online`."""
    return _VERSION_NAME.fullmatch(name) is not None


def version_name(number: int, slug: str | None = None) -> str:
    """The whole name of a version: `v2_tiling`, `v5`."""
    slug = slug or SLUGS.get(number)
    return f"v{number}_{slug}" if slug else f"v{number}"


def short(version: str) -> str:
    """`v2_tiling` -> `v2`; other providers as they are."""
    match = _VERSION_NAME.fullmatch(version)
    return f"v{match[1]}" if match else version


def shape_text(shape: Sequence[int]) -> str:
    """`257x1023`; a scalar's shape is `()`."""
    return "x".join(str(n) for n in shape) or "()"


def shape_of(text: str) -> tuple[int, ...] | None:
    """(257, 1023) of `257x1023`; None where it is no shape."""
    if not _SHAPE.fullmatch(text) or 0 in (shape := tuple(int(n) for n in text.split("x"))):
        return None
    return shape
