"""Text of the badges of a result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from triton_magics.model import Badge, BadgeCode, BadgeParameter
from triton_magics.rendering.blocks import Document, Line
from triton_magics.rendering.numbers import percent_text

Params = Mapping[str, BadgeParameter]


def badge_labels(badges: Sequence[Badge], *, is_brief: bool = False) -> tuple[str, ...]:
    """Return each text once: `quick`, `v1, v3: fewer than 5 runs`.

    Args:
        badges: of a result.
        is_brief: count the limits that the verdict of a validation lists.
    """
    versions: dict[tuple[str, bool], dict[str, None]] = {}
    for badge in badges:
        is_counted = is_brief and badge.code is BadgeCode.STATED_LIMITS
        text = _count_limits if is_counted else _TEXTS[badge.code]
        key = text(badge.params), badge.version is not None
        versions.setdefault(key, {})[badge.version or ""] = None
    return tuple(
        f"{', '.join(about)}: {text}" if has_version else text
        for (text, has_version), about in versions.items()
    )


def badge_lines(badges: Sequence[Badge]) -> Document:
    """Return one line with all badges, if there are any."""
    return (Line("badges: " + " · ".join(badge_labels(badges)), "warn"),) if badges else ()


def badge_text(badges: Sequence[Badge]) -> str:
    """Return the badges for the end of a caption, without the interpreter's: ` [quick]`."""
    others = [badge for badge in badges if badge.code is not BadgeCode.INTERPRETER]
    shown = badge_labels(others, is_brief=True)
    return f" [{', '.join(shown)}]" if shown else ""


def _own_tolerance(params: Params) -> str:
    return "your own tolerance: " + ", ".join(f"{name}={value:g}" for name, value in params.items())


def _needs_gpu(params: Params) -> str:
    value = "" if params["value"] is True else f" {params['value']}"
    return f"--{params['parameter']}{value} needs a GPU"


def _changed_settings(params: Params) -> str:
    return f"{params.get('provider', 'the import of a version')} changed torch's settings; restored"


def _possible_caching(params: Params) -> str:
    return (
        f"possible result caching by {params['provider']}: at {params['size']}, the first call of "
        f"each run is {params['times']:.1f}x slower than the rest"
    )


def _values_text(params: Params, name: str, between: str = ", ") -> str:
    values = params[name]
    return between.join(map(str, values)) if isinstance(values, tuple) else str(values)


def _number(value: BadgeParameter) -> float:
    return value if isinstance(value, int | float) else 0.0


def _count_limits(params: Params) -> str:
    """Return `3 stated limits`."""
    extents = params["extents"]
    n = len(extents) if isinstance(extents, tuple) else 1
    return f"{n} stated limit{'s' * (n > 1)}"


def _lines_not_run(params: Params) -> str:
    """Return `no case ran cell line 22 and 3 more`."""
    lines = params["lines"]
    first, *more = lines if isinstance(lines, tuple) else (lines,)
    return f"no case ran cell line {first}" + (f" and {len(more)} more" if more else "")


_TEXTS: Mapping[BadgeCode, Callable[[Params], str]] = MappingProxyType(
    {
        BadgeCode.QUICK_PLAN: lambda _: "quick",
        BadgeCode.NAMED_SHAPES: lambda _: "only some shapes",
        BadgeCode.NAMED_CASES: lambda _: "only some cases",
        BadgeCode.OWN_INPUTS: lambda params: f"only the inputs of {params['file']}",
        BadgeCode.BACKWARD_ONLY: lambda _: "the backward pass alone",
        BadgeCode.SOME_DTYPES: lambda params: f"{_values_text(params, 'dtypes')} only",
        BadgeCode.SOME_LAYOUTS: lambda params: (
            f"inputs in these layouts only: {_values_text(params, 'layouts')}"
        ),
        BadgeCode.OWN_TOLERANCE: _own_tolerance,
        BadgeCode.LOOSENED_TOLERANCE: lambda _: "loosened tolerance",
        BadgeCode.UNCALIBRATED: lambda params: f"uncalibrated: {_values_text(params, 'dtypes')}",
        BadgeCode.INTERPRETER: lambda _: "interpreter",
        BadgeCode.FEW_RUNS: lambda params: f"fewer than {params['runs']} runs",
        BadgeCode.NEEDS_GPU: _needs_gpu,
        BadgeCode.RAW_TIMES: lambda _: "raw times: CUPTI did not measure what the timer adds",
        BadgeCode.CHANGED_SETTINGS: _changed_settings,
        BadgeCode.POSSIBLE_CACHING: _possible_caching,
        BadgeCode.SLOWED_TORCH: lambda params: (
            f"torch took {params['times']}x as long beside the versions at {params['size']}; "
            "its own time is used"
        ),
        BadgeCode.CLOCK_LIMITED: lambda params: (
            f"clock held down: {_values_text(params, 'causes')}"
        ),
        BadgeCode.SHARED_GPU: lambda params: (
            f"shared GPU: process {_values_text(params, 'pids')} uses it too"
        ),
        BadgeCode.TORCH_WORK: lambda params: (
            f"torch computes {percent_text(100 * _number(params['share']))} of the work "
            f"({_values_text(params, 'operations')})"
        ),
        BadgeCode.PROBLEM_RULE: lambda params: (
            f"the problem's own rule accepts {params['accepted']} of {params['cases']} cases"
        ),
        BadgeCode.STATED_LIMITS: lambda params: (
            f"limits: {_values_text(params, 'extents', between='; ')}"
        ),
        BadgeCode.LINES_NOT_RUN: _lines_not_run,
        BadgeCode.SCATTERED: lambda _: (
            "its output is not contiguous, as torch's is: `view` may fail"
        ),
        BadgeCode.DEFAULT_DTYPE: lambda _: (
            "wrong under another `torch.set_default_dtype`: give each new tensor its dtype"
        ),
        BadgeCode.TEXT: lambda params: str(params["text"]),
    }
)
