"""Fields that several requests share: their types, bounds, and how they are written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from triton_magics import languages
from triton_magics.model import PlanName, shape_of
from triton_magics.session.checks import (
    MAX_BUDGET_S,
    MAX_RUNS,
    MAX_SEED,
    MAX_TIMEOUT_S,
)
from triton_magics.verbs._arguments import read_shape, split_commas
from triton_magics.verbs._base import Arg, constant, option, place, rule


def _as_tuple(value: Any) -> Any:
    if isinstance(value, str):
        return shape_of(value) or value
    return tuple(value) if isinstance(value, list) else value


MAX_EXTENT = 2**40
MAX_DIMENSIONS = 64  # of a tensor of torch
Extent = Annotated[int, Field(ge=1, le=MAX_EXTENT)]
Shape = Annotated[tuple[Extent, ...], Field(max_length=MAX_DIMENSIONS), BeforeValidator(_as_tuple)]

OP = place("its name or an alias: softmax, add", names="op")
VERSION = place("v2, or a name of your own: v2_online", names="version")

Op = Annotated[str, OP]
Version = Annotated[str, VERSION]
NewVersion = Annotated[str, place(VERSION.help, names="version new")]
Ops = Annotated[
    Sequence[str],
    place(
        "ops (default: all of the workspace)",
        names="op",
        metavar="OP",
        nargs="*",
        join=lambda words: tuple(name for word in words for name in split_commas(word)),
        doc="names or aliases, in order; by default every op of the workspace",
    ),
]
Language = Annotated[
    str,
    rule(languages.get),
    option(
        "kernel language",
        "--type",
        "--language",
        names="language",
        metavar="NAME",
        choices=languages.names,
        doc="name of the kernel language; `triton_magics.languages.names()` lists them",
    ),
]
Dtype = Annotated[
    str | None,
    option("of the inputs (default: float32, or the op's first)", names="dtype", metavar="DTYPE"),
]
Dtypes = Annotated[
    Sequence[str] | None,
    option(
        "only these: float32,float16 (default: all that the op declares)",
        "--dtype",
        names="dtype",
        metavar="DTYPES",
        read=split_commas,
    ),
]
Plan = Annotated[
    PlanName,
    constant("fewer cases: enough for a benchmark, not for the end", "--quick", "quick"),
    constant(
        "more cases: every triple of kinds of input, and extreme shapes", "--thorough", "thorough"
    ),
    option(
        "full, or quick or thorough as those flags do",
        "--cases",
        metavar="PLAN",
    ),
]
Shapes = Annotated[
    Sequence[Shape],
    option(
        "only this one, to replay a case; may be repeated",
        "--shape",
        metavar="NxM",
        read=read_shape,
    ),
]
Size = Annotated[
    str | None,
    option("of the op: small, medium or large (default: the first)", names="size", metavar="SIZE"),
]
SizeOrShape = Annotated[
    str | None,
    option(
        "a size of the op or a shape such as 8192x151936 (default: the op's largest)",
        names="size",
        metavar="SIZE",
    ),
]
Seed = Annotated[
    int | None,
    Field(ge=0, le=MAX_SEED),
    option("of the inputs (default: a new one, which the result shows)", metavar="N"),
]
Timeout = Annotated[
    float | None,
    Field(gt=0, le=MAX_TIMEOUT_S),
    option("time limit in seconds (default: that of the settings)", metavar="S"),
]
Budget = Annotated[
    float | None,
    Field(ge=0, le=MAX_BUDGET_S),
    option("seconds for rounds that settle a verdict; without a GPU, for all runs", metavar="S"),
]
Runs = Annotated[int, Field(ge=1, le=MAX_RUNS), option("timed runs of each", metavar="N")]
Hot = Annotated[bool, option("leave the inputs in the L2 cache")]
Cell = Annotated[str, Arg("the whole source, byte for byte", kind="cell")]
