"""Tests of the resource that limits a kernel, from its counters."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.report_values.profiles import kernels_on_h200, sampled_kernels
from triton_magics.model import (
    METRICS,
    CallRoofline,
    Case,
    Profile,
    ProfiledKernel,
    Status,
    categories_of,
)
from triton_magics.model.profile_metrics import CATEGORIES

SAMPLED = sampled_kernels()
KNOWLEDGE = Path(__file__).parents[1] / "knowledge" / "techniques.json"
TECHNIQUES = {technique["name"] for technique in json.loads(KNOWLEDGE.read_text())}
IDLE = {"memory_pct": 30.0, "sm_pct": 20.0, "duration_us": 100.0, "issue_pct": 25.0}
WAITS = {"long_scoreboard": 9.0, "wait": 1.0}


def limit_of(**figures: Any) -> tuple[str, str, str] | None:
    limit = ProfiledKernel(name="kernel", **figures).limit
    return limit and (limit.kind, limit.field, limit.technique)


@pytest.mark.parametrize(
    ("figures", "expected"),
    [
        ({"memory_pct": 60, "dram_pct": 60, "sm_pct": 59}, ("memory", "dram_pct", "kernel_fusion")),
        ({"memory_pct": 61, "l2_pct": 61, "sm_pct": 59}, ("memory", "l2_pct", "tiling")),
        ({"memory_pct": 61, "sm_pct": 59}, ("memory", "memory_pct", "tiling")),
        (
            {"memory_pct": 90, "dram_pct": 90, "sm_pct": 5, "load_used_pct": 49},
            ("memory", "dram_pct", "coalescing"),
        ),
        (
            {**IDLE, "store_used_pct": 12, "load_used_pct": 40, "stalls": WAITS},
            ("memory", "store_used_pct", "coalescing"),
        ),
        ({"memory_pct": 60, "sm_pct": 61}, ("compute", "sm_pct", "tiling")),
        (
            {"memory_pct": 60, "sm_pct": 61, "tensor_pct": 40},
            ("compute", "sm_pct", "tensor_descriptors"),
        ),
        ({**IDLE, "duration_us": 4.9}, ("launch", "duration_us", "kernel_fusion")),
        ({**IDLE, "occupancy_pct": 29, "waves": 0.5}, ("occupancy", "occupancy_pct", "split_k")),
        ({**IDLE, "occupancy_pct": 29, "waves": 4}, ("occupancy", "occupancy_pct", "autotune")),
        ({**IDLE, "occupancy_pct": 30}, ("latency", "issue_pct", "autotune")),
        ({**IDLE, "stalls": WAITS}, ("latency", "issue_pct", "tiling")),
        ({"memory_pct": 90.0}, None),
    ],
)
def test_first_rule_that_applies_gives_the_limit(
    figures: dict[str, Any], expected: tuple[str, str, str] | None
) -> None:
    assert limit_of(**figures) == expected
    assert expected is None or expected[2] in TECHNIQUES


@pytest.mark.parametrize(
    ("name", "kind", "field"),
    [
        ("copy", "memory", "dram_pct"),
        ("strided", "memory", "load_used_pct"),
        ("bf16", "memory", "l2_pct"),
        ("ieee", "compute", "sm_pct"),
        ("spills", "memory", "local_bytes"),
        ("occupancy", "memory", "dram_pct"),
        ("launch", "launch", "duration_us"),
        ("torch", "latency", "issue_pct"),
    ],
)
def test_limits_of_kernels_on_an_h100(name: str, kind: str, field: str) -> None:
    limit = SAMPLED[name].limit
    assert limit is not None
    assert (limit.kind, limit.field) == (kind, field)
    assert limit.technique in TECHNIQUES


@pytest.mark.parametrize(
    ("name", "kind", "field"),
    [
        ("copy", "memory", "dram_pct"),
        ("strided", "memory", "load_used_pct"),
        ("spills", "memory", "local_bytes"),
        ("conflicts", "memory", "conflict_share"),
        ("occupancy", "occupancy", "occupancy_pct"),
        ("softmax", "memory", "dram_pct"),
    ],
)
def test_limits_of_kernels_on_an_h200(name: str, kind: str, field: str) -> None:
    limit = kernels_on_h200()[name].limit
    assert limit is not None
    assert (limit.kind, limit.field) == (kind, field)
    assert limit.technique in TECHNIQUES


def test_spills_and_conflicts_limit_where_they_are_most_traffic() -> None:
    busy = {"memory_pct": 90.0, "l1_pct": 90.0, "sm_pct": 5.0}
    traffic = {"dram_read_bytes": 60.0, "dram_write_bytes": 40.0}
    spills = {"local_load_bytes": 25.0, "local_store_bytes": 24.0}
    assert limit_of(**busy, **traffic, **spills) == ("memory", "l1_pct", "tiling")
    spills["local_store_bytes"] = 25.0
    assert limit_of(**busy, **traffic, **spills) == ("memory", "local_bytes", "autotune")
    shared = {"shared_load_conflicts": 5.0, "shared_store_conflicts": 0.0}
    waits = {"stalls": {"short_scoreboard": 2.0}}
    few = {"shared_wavefronts": 10.1, **shared, **waits}
    assert limit_of(**busy, **few) == ("memory", "l1_pct", "tiling")
    most = few | {"shared_wavefronts": 10.0}
    assert limit_of(**busy, **most) == ("memory", "conflict_share", "bank_conflicts")
    assert limit_of(**busy, **most | {"stalls": WAITS}) == ("memory", "l1_pct", "tiling")


def test_every_metric_has_a_field_of_its_own() -> None:
    fields = [metric.field for metric in METRICS]
    assert len(set(fields)) == len(fields)
    assert set(fields) <= set(ProfiledKernel.model_fields)
    assert sorted(name for names in CATEGORIES.values() for name in names) == sorted(fields)
    assert len({metric.raw for metric in METRICS}) == len(fields)


def test_categories_have_units_raw_names_and_reasons() -> None:
    categories = categories_of(SAMPLED["bf16"])
    assert list(categories)[:2] == ["timing", "speed_of_light"]
    assert categories["stall"]["wait"].raw.startswith("smsp__average_warps_issue_stalled_wait")
    tensor = categories["pipeline_metrics"]["tensor_pct"]
    assert (tensor.value, tensor.missing) == (64.94, None)
    used = categories["access_pattern"]["load_used_pct"]
    assert used.value is None
    assert "no such access" in (used.missing or "")


def test_roofline_is_the_least_time_by_measured_rates() -> None:
    call = CallRoofline(
        bytes=8 * 10**6, flops=10**6, time_us=4.0, clock="counters", copy_gbps=4000.0,
        peak_tflops=50.0,
    )  # fmt: skip
    assert (call.limit_us, call.share_pct, call.bound) == (2.0, 50, "memory")
    assert (call.gbps, call.intensity) == (2000, 1 / 8)
    many = call.evolve(flops=200 * 10**6)
    assert (many.limit_us, many.bound, many.tflops) == (4.0, "compute", 50)
    unknown = CallRoofline(clock="activity")
    assert (unknown.limit_us, unknown.share_pct, unknown.bound) == (None, None, None)


def test_limit_of_a_call_is_that_of_its_longest_kernel() -> None:
    kernels = (SAMPLED["launch"], SAMPLED["copy"])
    case = Case(shape=(8,), dtype="float32", seed=1)
    profile = Profile(
        op="relu", version="v1", attempt=1, sha256="", status=Status.PASSED, case=case,
        kernels=tuple(k.evolve(share=s) for k, s in zip(kernels, (0.1, 0.9), strict=True)),
    )  # fmt: skip
    assert profile.main_kernel is profile.kernels[1]
    assert profile.limit == SAMPLED["copy"].limit
    assert profile.duration_us == pytest.approx(2.656 + 174.82, abs=0.01)
    assert profile.evolve(kernels=()).duration_us is None


def test_stalls_and_spills_are_totals_of_the_counters() -> None:
    reasons = dict(SAMPLED["strided"].top_stalls)
    assert list(reasons) == ["lg_throttle", "mio_throttle", "long_scoreboard"]
    assert reasons["lg_throttle"] == pytest.approx(0.426, abs=0.001)
    assert SAMPLED["spills"].local_bytes == 626165504 + 583385984
    assert SAMPLED["copy"].local_bytes == 0
    assert SAMPLED["bf16"].conflict_share == pytest.approx((63171 + 13986) / 28676806)
    assert ProfiledKernel(name="k").conflict_share is None
