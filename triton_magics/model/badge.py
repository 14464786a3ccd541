"""Reservations that a result carries, as values; `report` writes them out."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any, NamedTuple, Self

from pydantic import Field, model_validator

from triton_magics.model.base import Value

BadgeParameter = bool | int | float | str | tuple[int | str, ...]


class BadgeCode(StrEnum):
    """Kind of a reservation."""

    QUICK_PLAN = "quick_plan"
    NAMED_SHAPES = "named_shapes"
    NAMED_CASES = "named_cases"
    OWN_INPUTS = "own_inputs"
    BACKWARD_ONLY = "backward_only"
    SOME_DTYPES = "some_dtypes"
    SOME_LAYOUTS = "some_layouts"
    OWN_TOLERANCE = "own_tolerance"
    LOOSENED_TOLERANCE = "loosened_tolerance"
    UNCALIBRATED = "uncalibrated"
    INTERPRETER = "interpreter"
    FEW_RUNS = "few_runs"
    NEEDS_GPU = "needs_gpu"
    RAW_TIMES = "raw_times"
    CHANGED_SETTINGS = "changed_settings"
    POSSIBLE_CACHING = "possible_caching"
    SLOWED_TORCH = "slowed_torch"
    CLOCK_LIMITED = "clock_limited"
    SHARED_GPU = "shared_gpu"
    TORCH_WORK = "torch_work"
    PROBLEM_RULE = "problem_rule"
    STATED_LIMITS = "stated_limits"
    LINES_NOT_RUN = "lines_not_run"
    DEFAULT_DTYPE = "default_dtype"
    SCATTERED = "scattered"
    TEXT = "text"


class BadgeParameters(NamedTuple):
    """Names and types of a badge's parameters."""

    required: Mapping[str, type | tuple[type, ...]] = MappingProxyType({})
    optional: Mapping[str, type | tuple[type, ...]] = MappingProxyType({})


_NUMBER = (int, float)
PARAMETERS: Mapping[BadgeCode, BadgeParameters] = MappingProxyType(
    {
        BadgeCode.OWN_TOLERANCE: BadgeParameters(optional={"rtol": _NUMBER, "atol": _NUMBER}),
        # The file that had them.
        BadgeCode.OWN_INPUTS: BadgeParameters({"file": str}),
        # The dtypes that were checked.
        BadgeCode.SOME_DTYPES: BadgeParameters({"dtypes": tuple}),
        # The layouts that the op restricts its tensors to.
        BadgeCode.SOME_LAYOUTS: BadgeParameters({"layouts": tuple}),
        # Dtypes in which no case that passed detects a lower precision.
        BadgeCode.UNCALIBRATED: BadgeParameters({"dtypes": tuple}),
        # `runs`: as many as were requested.
        BadgeCode.FEW_RUNS: BadgeParameters({"runs": int}),
        # A parameter of the benchmark that was ignored, because there is no GPU.
        BadgeCode.NEEDS_GPU: BadgeParameters({"parameter": str, "value": (str, bool)}),
        # Without a provider, the import of a version changed them.
        BadgeCode.CHANGED_SETTINGS: BadgeParameters(optional={"provider": str}),
        BadgeCode.POSSIBLE_CACHING: BadgeParameters(
            {"provider": str, "size": str, "times": _NUMBER}
        ),
        # Torch took so many times as long in the process of the versions.
        BadgeCode.SLOWED_TORCH: BadgeParameters({"size": str, "times": _NUMBER}),
        BadgeCode.CLOCK_LIMITED: BadgeParameters({"causes": tuple}),
        BadgeCode.SHARED_GPU: BadgeParameters({"pids": tuple}),
        # `share` of the op's work, 0 to 1.
        BadgeCode.TORCH_WORK: BadgeParameters({"operations": tuple, "share": _NUMBER}),
        # The rule of the problem that the op was imported from: cases that it accepts, of how many.
        BadgeCode.PROBLEM_RULE: BadgeParameters({"accepted": int, "cases": int}),
        # Names of extreme shapes that the version refuses, or that are too large to launch.
        BadgeCode.STATED_LIMITS: BadgeParameters({"extents": tuple}),
        # Lines of the cell that no case ran.
        BadgeCode.LINES_NOT_RUN: BadgeParameters({"lines": tuple}),
        # A sentence of a record that was written before badges were values.
        BadgeCode.TEXT: BadgeParameters({"text": str}),
    }
)


class Badge(Value):
    """A reservation about a result.

    Attributes:
        code: its kind.
        params: by the names that `PARAMETERS` lists.
        version: the version that it is about, where the result is about several.
    """

    code: BadgeCode
    params: dict[str, BadgeParameter] = Field(default_factory=dict)
    version: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _convert_text(cls, value: Any) -> Any:
        return _from_text(value) if isinstance(value, str) else value

    @model_validator(mode="after")
    def _check_parameters(self) -> Self:
        declared = PARAMETERS.get(self.code, BadgeParameters())
        types = {**declared.required, **declared.optional}
        missing = [name for name in declared.required if name not in self.params]
        wrong = [
            name
            for name, value in self.params.items()
            if name not in types or not isinstance(value, types[name])
        ]
        if missing or wrong:
            raise ValueError(f"badge {self.code}: missing {missing}, wrong {wrong}")
        return self

    @classmethod
    def of(cls, code: BadgeCode, **params: BadgeParameter) -> Self:
        """Return the badge with these parameters."""
        return cls(code=code, params=params)


# Badges were sentences up to schema 4 of the store.
_PLAIN = {
    "quick": BadgeCode.QUICK_PLAN,
    "only some shapes": BadgeCode.NAMED_SHAPES,
    "loosened tolerance": BadgeCode.LOOSENED_TOLERANCE,
    "interpreter": BadgeCode.INTERPRETER,
    "raw times: CUPTI could not tell what the timer adds": BadgeCode.RAW_TIMES,
}
_OF_A_VERSION = re.compile(r"(v\d+): (.+)", re.DOTALL)
_SENTENCES: tuple[tuple[BadgeCode, str, Callable[[re.Match[str]], dict[str, Any]]], ...] = (
    (
        BadgeCode.OWN_TOLERANCE,
        r"your own tolerance: (?:rtol=(?P<rtol>\S+?))?(?:, )?(?:atol=(?P<atol>\S+))?",
        lambda m: {k: float(v) for k, v in m.groupdict().items() if v},
    ),
    (
        BadgeCode.FEW_RUNS,
        r"fewer than (\d+) runs",
        lambda m: {"runs": int(m[1])},
    ),
    (
        BadgeCode.NEEDS_GPU,
        r"--(\w+)(?: (\w+))? needs a GPU",
        lambda m: {"parameter": m[1], "value": m[2] or True},
    ),
    (
        BadgeCode.CHANGED_SETTINGS,
        r"(?:a version's import|(\S+)) changes torch's settings; they were put back",
        lambda m: {"provider": m[1]} if m[1] else {},
    ),
    (
        BadgeCode.POSSIBLE_CACHING,
        (
            r"does (\S+) keep its answer\? At (\S+) a run's first call takes ([\d.]+) times as long"
            r" as the others"
        ),
        lambda m: {"provider": m[1], "size": m[2], "times": float(m[3])},
    ),
    (
        BadgeCode.CLOCK_LIMITED,
        r"clock held down: (.+)",
        lambda m: {"causes": m[1].split(", ")},
    ),
    (
        BadgeCode.SHARED_GPU,
        r"shared GPU: process ([\d, ]+) uses it too",
        lambda m: {"pids": [int(n) for n in m[1].split(", ")]},
    ),
)


def _from_text(text: str) -> dict[str, Any]:
    """Convert a badge of an older record."""
    if match := _OF_A_VERSION.fullmatch(text):
        return {**_from_sentence(match[2]), "version": match[1]}
    return _from_sentence(text)


def _from_sentence(text: str) -> dict[str, Any]:
    if text in _PLAIN:
        return {"code": _PLAIN[text]}
    for code, pattern, params in _SENTENCES:
        match = re.fullmatch(pattern, text)
        if match:
            try:
                return {"code": code, "params": params(match)}
            except ValueError:  # a number that is none
                break
    return {"code": BadgeCode.TEXT, "params": {"text": text}}
