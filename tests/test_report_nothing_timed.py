"""A benchmark in which nobody has a time: why, and that no output was wrong."""

from __future__ import annotations

import pytest

from tests.fake_engine import environment
from triton_magics.model import Benchmark, DeviceKind, NotTimed, Status
from triton_magics.report import to_text, view


def said(kind: DeviceKind = "gpu", **changes: object) -> str:
    """How a benchmark of v1 without a time reads."""
    given = {
        "op": "softmax", "status": Status.FAILED, "versions": ("v1_baseline",), "sha256s": ("0",),
        "providers": ("torch", "v1_baseline"), "sizes": ("7", "3x3x3"), "runs": 10, "seed": 5,
        "dtype": "float32", "clock": kind, "environment": environment(kind),
    }  # fmt: skip
    return to_text(view(Benchmark.model_validate({**given, **changes})), width=150)


@pytest.mark.parametrize("kind", ["gpu", "interpreter"])
def test_where_nobody_has_a_time_each_reason_is_told(kind: DeviceKind) -> None:
    why = ("ValueError: not enough values to unpack", "out of GPU memory")
    missing = tuple(
        NotTimed(size=size, provider="v1_baseline", reason=reason)
        for size, reason in zip(("7", "3x3x3"), why, strict=True)
    )
    told = said(kind, not_timed=missing)
    assert told.startswith("✗ NOT TIMED  softmax v1: at no size is there a time")
    assert all(reason in told for reason in why)
    assert "wrong" not in told
    assert "next: other sizes or shapes, or mend the cell" in told


def test_a_wrong_output_voids_it_as_ever() -> None:
    told = said(message="v1 gave a wrong answer in a timed run at small: 3 times the error")
    assert told.startswith("✗ VOID  softmax v1: v1 gave a wrong answer in a timed run at small")
