"""The view of a benchmark without times."""

from __future__ import annotations

import pytest

from tests.fake_executor import environment
from triton_magics.model import Benchmark, DeviceKind, NotTimed, Status
from triton_magics.rendering import to_text, view


def message(kind: DeviceKind = "gpu", **changes: object) -> str:
    """Return the view of a benchmark of v1 without a time."""
    log = {
        "op": "softmax", "status": Status.FAILED, "versions": ("v1_baseline",), "sha256s": ("0",),
        "providers": ("torch", "v1_baseline"), "sizes": ("7", "3x3x3"), "runs": 10, "seed": 5,
        "dtype": "float32", "clock": kind, "environment": environment(kind),
    }  # fmt: skip
    return to_text(view(Benchmark.model_validate({**log, **changes})), width=150)


@pytest.mark.parametrize("kind", ["gpu", "interpreter"])
def test_benchmark_without_times_shows_each_reason(kind: DeviceKind) -> None:
    why = ("ValueError: not enough values to unpack", "out of GPU memory")
    missing = tuple(
        NotTimed(size=size, provider="v1_baseline", reason=reason)
        for size, reason in zip(("7", "3x3x3"), why, strict=True)
    )
    text = message(kind, not_timed=missing)
    assert text.startswith("✗ NOT TIMED  softmax v1: no size has a time")
    assert all(reason in text for reason in why)
    assert "wrong" not in text
    assert "next: try other sizes or shapes, or fix the code" in text


def test_wrong_output_voids_the_benchmark() -> None:
    text = message(message="v1 gave a wrong answer in a timed run at small: 3 times the error")
    assert text.startswith("✗ VOID  softmax v1: v1 gave a wrong answer in a timed run at small")


@pytest.mark.parametrize(
    ("code", "word"), [("cached", "CACHED"), ("impossible", "IMPOSSIBLE"), ("wrong_output", "VOID")]
)
def test_a_void_time_has_its_own_verdict(code: str, word: str) -> None:
    reason = "v1_baseline caches answers: at small a timed call gave the answer for other inputs"
    culprit = NotTimed(size="small", provider="v1_baseline", reason=reason, code=code)
    lines = message(message=reason, not_timed=(culprit,)).splitlines()
    assert lines[0] == f"✗ {word}  softmax v1: {reason}"
    is_cached = lines[-1] == "next: compute every call from its own inputs and write it again"
    assert is_cached is (code == "cached")
