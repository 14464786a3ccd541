"""A survey as an order for a compile process, made while the first cases of a validation run."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pydantic

from triton_magics.execution.job_refs import OpRef, VersionRef
from triton_magics.harness import compile_ahead, job_sources
from triton_magics.harness.compile_ahead import order_about, read_order
from triton_magics.harness.correctness.launch_relations import LaunchSurvey
from triton_magics.harness.correctness.launch_survey import survey_launches
from triton_magics.harness.load import load_version
from triton_magics.harness.process.device import META
from triton_magics.harness.process.fake_gpu import fake_gpu
from triton_magics.languages.kernel_compiler import Target
from triton_magics.model import Case

_CASES = pydantic.TypeAdapter(tuple[Case, ...])


def survey_order(
    op: OpRef, version: VersionRef, cases: Sequence[Case], limit_s: float, target: Target
) -> dict[str, Any]:
    """Return an order to survey a version's launches for these cases."""
    file = job_sources.write(_CASES.dump_json(tuple(cases)).decode(), "survey.json")
    return {**order_about(op, version, target), "survey": str(file), "limit_s": limit_s}


def survey_of(order: Mapping[str, Any]) -> LaunchSurvey:
    """Return the survey that an order has led to; an empty one if there is none."""
    try:
        return LaunchSurvey.model_validate_json(_answer(order).read_bytes())
    except (OSError, pydantic.ValidationError):
        return LaunchSurvey()


def execute(order: dict[str, Any]) -> dict[str, Any] | None:
    """Execute an order in a compile process; return one that is to follow, if any."""
    if order.get("warm_up"):
        compile_ahead.warm_up(order)
        return None
    if "survey" not in order:
        return compile_ahead.compile_order(order)
    op, ref, target = read_order(order)
    cases = _CASES.validate_json(Path(order["survey"]).read_bytes())
    with fake_gpu(META, target):
        version = load_version(ref)
    survey = survey_launches(version, op, cases, order["limit_s"], target)
    _answer(order).write_text(survey.model_dump_json())
    return None


def _answer(order: Mapping[str, Any]) -> Path:
    """Return the file for the answer: beside the cases, named by all of the order."""
    name = job_sources.digest(json.dumps(dict(order), sort_keys=True))
    return Path(order["survey"]).with_name(f"{name}.json")


__all__ = ["execute", "survey_of", "survey_order"]
