"""Conversion of records that were written before some of their text became values.

The functions take and give the fields of a value; those of a newer record are returned unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

NO_EVIDENCE = "recorded as passed without evidence: run it again"
_SPECIAL_REGIMES = ("equal", "zeros", "nonfinite")  # they became special values
_OWN_TOLERANCE = re.compile(r"your own tolerance: (.+)")


def convert_validation(fields: dict[str, Any]) -> dict[str, Any]:
    """Give a validation its `request`, which was `plan`, `seed` and options of a command line.

    Badges are derived since then; a tolerance that only a badge records is taken from it.
    """
    fields = _convert_share(fields)
    if "request" in fields:
        return {k: v for k, v in fields.items() if k != "badges"}
    if "plan" not in fields:
        return fields
    moved = ("plan", "seed", "options", "badges")
    request = {k: fields[k] for k in ("plan", "seed") if k in fields}
    request |= _tolerances(fields.get("badges") or ()) | _parameters(fields.get("options") or ())
    return {**{k: v for k, v in fields.items() if k not in moved}, "request": request}


def convert_case(fields: dict[str, Any]) -> dict[str, Any]:
    """Give a case its `layouts`, which were one `layout`, and its `special`, once a regime."""
    if "layout" not in fields and fields.get("regime") not in _SPECIAL_REGIMES:
        return fields
    case = {k: v for k, v in fields.items() if k != "layout"}
    if fields.get("layout", "contiguous") != "contiguous":
        case["layouts"] = (("*", fields["layout"]),)
    if case.get("regime") in _SPECIAL_REGIMES:
        case |= {"regime": "normal", "special": case["regime"]}
    return case


def _convert_share(fields: dict[str, Any]) -> dict[str, Any]:
    """Give a validation `computed_by`, which was the share of GPU time in Triton kernels."""
    if "triton_share" not in fields:
        return fields
    converted = {k: v for k, v in fields.items() if k != "triton_share"}
    if fields["triton_share"] is not None:
        converted["computed_by"] = {
            "kernel_share": fields["triton_share"],
            "measure": "gpu_time",
        }
    return converted


def convert_mismatch(fields: dict[str, Any]) -> dict[str, Any]:
    """Give the cause of a mismatch, once a text, its `advice`."""
    cause = fields.get("cause")
    if "advice" not in fields and not isinstance(cause, str):
        return fields
    older = {k: v for k, v in fields.items() if k != "advice"}
    if isinstance(cause, str):
        older["cause"] = {"code": "text", "text": cause, "advice": fields.get("advice")}
    return older


def convert_configuration(fields: dict[str, Any]) -> dict[str, Any]:
    """Give a point of a sweep that was not run the flags that its reason implies."""
    if fields.get("status") != "not_run" or "is_reached" in fields or "can_launch" in fields:
        return fields
    reason = str(fields.get("reason") or "")
    reached, launches = not reason.startswith("not reached"), "will not launch" not in reason
    return {**fields, "is_reached": reached, "can_launch": launches}


def rename_fields(value: Any, names: Mapping[str, str]) -> Any:
    """Give the fields of an older record their present names; `names` maps old to present."""
    if not isinstance(value, dict):
        return value
    return {names.get(name, name): field for name, field in value.items()}


def correct_result(fields: dict[str, Any]) -> dict[str, Any]:
    """Bring a recorded result that breaks a rule of the present into a form that keeps the rules.

    What is called passed and has no evidence of it becomes failed, with a message; a compile error
    without its error gets the first one that the record has.
    """
    if fields.get("status") == "compile_error" and not fields.get("error"):
        return {**fields, "error": _first_error(fields)}
    if fields.get("status") == "passed":
        return {**fields, "status": "failed", "message": fields.get("message") or NO_EVIDENCE}
    return fields


def _first_error(fields: dict[str, Any]) -> dict[str, Any]:
    lists = (fields.get(name) for name in ("configurations", "cases"))
    entries = [entry for group in lists if isinstance(group, list) for entry in group]
    errors = (entry.get("error") for entry in entries if isinstance(entry, dict))
    unknown = {"kind": "CompileError", "message": fields.get("message") or "not recorded"}
    return next((error for error in errors if isinstance(error, dict)), unknown)


def _parameters(options: Iterable[Any]) -> dict[str, Any]:
    """Parse options such as `--dtype float32,float16`, `--rtol 0.1`, `--shape 7x13`."""
    parameters: dict[str, Any] = {}
    for option in map(str, options):
        flag, _, text = option.partition(" ")
        if flag == "--dtype":
            parameters["dtypes"] = text.split(",")
        elif flag in ("--rtol", "--atol"):
            parameters[flag.removeprefix("--")] = text
        elif flag == "--shape":
            parameters.setdefault("shapes", []).append(text.split("x"))
        else:
            raise ValueError(f"unknown option of a validation: {option!r}")
    return parameters


def _tolerances(badges: Iterable[Any]) -> dict[str, str]:
    """Parse `your own tolerance: rtol=0.1, atol=0.2`."""
    texts = (_OWN_TOLERANCE.fullmatch(badge) for badge in badges if isinstance(badge, str))
    pairs = (pair.partition("=") for match in texts if match for pair in match[1].split(", "))
    return {name: value for name, _, value in pairs if name in ("rtol", "atol")}
