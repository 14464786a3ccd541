# ruff: noqa: F811 (a fixture is imported, and named again by each test that asks for it)
"""Times at different moments: then against now, regressions, the history, forms of other tools."""

from __future__ import annotations

import json
import math
import random
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.fake_executor import FakeExecutor
from tests.lab_harness import engine, lab, write  # noqa: F401 (engine, lab: fixtures)
from triton_magics import cli
from triton_magics.config import Settings
from triton_magics.errors import BadValue, IllegalStep, UnknownVersion
from triton_magics.lab import Lab
from triton_magics.model import Benchmark, History, Retiming, Status
from triton_magics.rendering import draw_plot, to_text, view
from triton_magics.stats import Interval, paired_speedup, verdict
from triton_magics.verbs import _retiming


def _timed(lab: Lab, engine: FakeExecutor, *versions: str) -> None:
    """Write versions, validate them, and time them once."""
    for version in versions:
        write(lab, version)
    lab.validate("softmax", "all")
    engine.times_us = dict.fromkeys(versions, (1.0, 4.0, 40.0))
    lab.bench("softmax")


def test_again_shows_then_against_now_by_the_ratios_to_torch(
    lab: Lab, engine: FakeExecutor
) -> None:
    _timed(lab, engine, "v1", "v2")
    engine.triton = "3.8"
    engine.times_us = {"v1": (1.0, 4.0, 40.0), "v2": (1.0, 4.0, 50.0)}
    retiming = lab.bench("softmax", again=True)
    assert isinstance(retiming, Retiming)
    assert retiming.differences == ("triton 3.7 -> 3.8",)
    verdicts = {(c.version, c.size): c.verdict for c in retiming.changes}
    assert verdicts.pop(("v2_tiling", "large")) == "slower"
    assert set(verdicts.values()) == {"same"}
    (slower,) = retiming.slower
    assert slower.ratio == pytest.approx(0.8)
    text = to_text(view(retiming))
    assert "SLOWER" in text
    assert "softmax v2 at large is 25 % slower: 50.0 us, was 40.0 us" in text
    assert len(retiming.to_records()) == 6


def test_again_prefers_the_record_of_another_environment(lab: Lab, engine: FakeExecutor) -> None:
    _timed(lab, engine, "v1")
    engine.triton = "3.8"
    engine.times_us = {"v1": (1.0, 4.0, 50.0)}
    assert lab.bench("softmax", again=True).slower
    second = lab.bench("softmax", again=True)
    assert second.slower, "the record of 3.7 is the one to compare with, not the minute-old one"


def test_a_record_of_another_gpu_is_not_compared(lab: Lab, engine: FakeExecutor) -> None:
    _timed(lab, engine, "v1")
    engine.gpu = "NVIDIA L4"
    retiming = lab.bench("softmax", again=True)
    assert retiming.changes == ()
    assert retiming.not_compared == {
        "v1_baseline": "recorded on NVIDIA H200 only, which is another GPU"
    }
    assert "NOT COMPARED" in to_text(view(retiming))


def test_again_needs_a_recorded_time_of_this_very_source(lab: Lab, engine: FakeExecutor) -> None:
    _timed(lab, engine, "v1")
    write(lab, "v1", "changed")
    lab.validate("softmax", "v1")
    with pytest.raises(IllegalStep, match="no time of a GPU is recorded for the sources"):
        lab.bench("softmax", again=True)


def test_without_a_gpu_nothing_is_compared(tmp_path: Path) -> None:
    with Lab(tmp_path, engine=FakeExecutor("interpreter"), settings=Settings()) as lab:
        lab.op("softmax")
        for options in ({"again": True}, {"env": sys.executable}):
            with pytest.raises(IllegalStep, match="on a GPU only"):
                lab.bench("softmax", **options)
        with pytest.raises(IllegalStep, match="on a GPU only"):
            lab.check_regressions()


def test_a_regression_is_confirmed_and_leaves_no_record(lab: Lab, engine: FakeExecutor) -> None:
    _timed(lab, engine, "v1", "v2")
    engine.times_us = {"v1": (1.0, 4.0, 40.0), "v2": (1.0, 4.0, 50.0)}
    check = lab.check_regressions()
    assert check.status is Status.FAILED
    assert [(c.version, c.size) for c in check.slower] == [("v2_tiling", "large")]
    assert "REGRESSION" in to_text(view(check))
    assert len(_benchmarks(lab)) == 1


def _benchmarks(lab: Lab) -> list[Benchmark]:
    events = lab.session.workspace.events("softmax", verbs=("benchmarked",))
    return [e.result for e in events if isinstance(e.result, Benchmark)]


def test_one_slow_session_is_no_regression(lab: Lab, engine: FakeExecutor) -> None:
    _timed(lab, engine, "v1")
    run = engine.run

    def slow_once(job: Any, **more: Any) -> Any:
        engine.run = run
        engine.times_us = {"v1": (1.0, 4.0, 60.0)}
        outcome = run(job, **more)
        engine.times_us = {"v1": (1.0, 4.0, 40.0)}
        return outcome

    engine.run = slow_once
    check = lab.check_regressions()
    assert check.status is Status.PASSED
    assert [(c.version, c.size) for c in check.not_confirmed] == [("v1_baseline", "large")]
    assert "not so in a second session" in to_text(view(check))


def test_a_check_that_compared_nothing_does_not_pass(lab: Lab) -> None:
    check = lab.check_regressions()
    assert check.status is Status.UNAVAILABLE
    assert "no time of a GPU is recorded" in check.skipped["softmax"]


def test_the_history_has_a_point_for_each_version_and_benchmark(
    lab: Lab, engine: FakeExecutor, tmp_path: Path
) -> None:
    with pytest.raises(UnknownVersion, match="no benchmark of a GPU"):
        lab.history("softmax")
    _timed(lab, engine, "v1", "v2")
    assert "recorded benchmarks on NVIDIA" in to_text(view(lab.history("softmax")))
    engine.triton = "3.8"
    lab.bench("softmax")
    history = lab.history("softmax", to=tmp_path / "softmax.png")
    assert isinstance(history, History)
    assert [(p.version, p.triton) for p in history.points] == [
        ("v1_baseline", "3.7"), ("v2_tiling", "3.7"), ("v1_baseline", "3.8"), ("v2_tiling", "3.8"),
    ]  # fmt: skip
    assert history.points[0].speedup == pytest.approx((2 * 1.5 * 1.35) ** (1 / 3))
    assert (tmp_path / "softmax.png").read_bytes().startswith(b"\x89PNG")
    text = to_text(view(history))
    assert "over torch (geometric mean); 2 benchmarks, 2 environments" in text
    assert "recorded benchmarks on" not in text
    picture = draw_plot(history)
    assert picture is not None
    assert "over torch" in picture.alt


def test_a_history_without_a_gpu_names_no_next_step(tmp_path: Path) -> None:
    engine = FakeExecutor("interpreter")
    with (
        Lab(tmp_path, engine=engine, settings=Settings()) as lab,
        pytest.raises(UnknownVersion, match="and there is no GPU here") as caught,
    ):
        lab.history("softmax")
    assert caught.value.next_step is None


def test_times_for_bencher_and_github_action_benchmark(
    lab: Lab, engine: FakeExecutor, tmp_path: Path
) -> None:
    _timed(lab, engine, "v1")
    lab.metrics(["softmax"], to=tmp_path / "bmf.json")
    table = json.loads((tmp_path / "bmf.json").read_text())
    large = table["softmax/v1/large/float32"]
    assert large["latency"] == {"value": 40e3, "lower_value": 40e3, "upper_value": 40e3}
    assert large["speedup-over-torch"]["value"] == pytest.approx(1.35)
    lab.metrics(["softmax"], form="github", to=tmp_path / "github.json")
    entries = json.loads((tmp_path / "github.json").read_text())
    assert {e["name"]: e["value"] for e in entries}["softmax/v1/small/float32"] == 1.0
    assert {frozenset(e) for e in entries} == {
        frozenset(("name", "unit", "value", "range", "extra"))
    }


def test_a_line_of_flashinfer_trace_has_the_fields_of_its_schema(
    lab: Lab, engine: FakeExecutor, tmp_path: Path
) -> None:
    _timed(lab, engine, "v1")
    lab.metrics(["softmax"], form="trace", to=tmp_path / "traces.jsonl")
    lines = [json.loads(text) for text in (tmp_path / "traces.jsonl").read_text().splitlines()]
    assert len(lines) == 3
    first = lines[0]["evaluation"]
    assert (lines[0]["definition"], lines[0]["solution"]) == ("softmax", "softmax_v1_baseline")
    assert first["status"] == "PASSED"
    assert set(first) == {
        "status", "environment", "timestamp", "log", "correctness", "performance"
    }  # fmt: skip
    assert first["performance"]["latency_ms"] == pytest.approx(0.001)
    with pytest.raises(BadValue, match="can't be written"):
        lab.metrics(["softmax"], to=tmp_path / "none" / "x.json")


def test_the_command_ends_with_1_where_nothing_was_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TRITON_MAGICS_DEVICE", "interpreter")
    assert cli.main(["check-regressions", "--workspace", str(tmp_path)]) == cli.USER_ERROR
    assert "on a GPU only" in capsys.readouterr().err


# ------------------------------------------------------------------------- another environment


@pytest.mark.parametrize(
    ("name", "reason"),
    [("missing", "no interpreter there"), ("empty", "no interpreter there")],
)
def test_a_missing_interpreter_is_refused_before_any_job(
    tmp_path: Path, name: str, reason: str
) -> None:
    (tmp_path / "empty").mkdir()
    with Lab(tmp_path / "work", settings=Settings()) as lab, pytest.raises(BadValue, match=reason):
        _retiming.check_interpreter(lab.session, str(tmp_path / name))


def test_an_interpreter_without_packages_is_refused(tmp_path: Path) -> None:
    script = tmp_path / "python"
    script.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')  # -S: no site-packages
    script.chmod(0o755)
    message = r"pip install 'triton-magics\[kernels\]=="
    with Lab(tmp_path / "work", settings=Settings()) as lab, pytest.raises(BadValue, match=message):
        _retiming.check_interpreter(lab.session, str(script))


def _session(us: float, torch_us: float = 54.0, *, triton: str = "3.7") -> Benchmark:
    from tests.fake_executor import environment
    from triton_magics.model import Timing

    def timing(provider: str, mean: float) -> Timing:
        return Timing(
            provider=provider, size="large", shape=(4096, 4096), clock="gpu",
            samples_us=tuple(mean * (1 + 0.002 * (i % 3 - 1)) for i in range(10)),
        )  # fmt: skip

    return Benchmark(
        op="softmax", status=Status.PASSED, versions=("v1_baseline",), sha256s=("0" * 64,),
        providers=("torch", "v1_baseline"), sizes=("large",), runs=10, dtype="float32",
        clock="gpu", timings=(timing("torch", torch_us), timing("v1_baseline", us)), seed=1,
        environment=environment("gpu").evolve(triton=triton),
    )  # fmt: skip


def test_two_environments_are_compared_by_sessions_in_turn() -> None:
    here = (_session(40.0), _session(40.2))
    there = (_session(44.0, triton="3.8"), _session(44.1, triton="3.8"))
    retiming = _retiming.compare_environments(here, there, "/venv/bin/python")
    (change,) = retiming.changes
    assert (change.verdict, retiming.basis) == ("slower", "torch")
    assert retiming.differences == ("triton 3.7 -> 3.8",)
    assert "/venv/bin/python" in to_text(view(retiming))


def test_sessions_that_differ_leave_a_change_undecided() -> None:
    here = (_session(40.0), _session(44.0))
    there = (_session(44.0), _session(40.5))
    (change,) = _retiming.compare_environments(here, there, "python").changes
    assert change.verdict == "undecided"


def test_environments_with_different_torch_are_compared_by_time() -> None:
    there = [b.evolve(environment=b.environment.evolve(torch="2.14"))
             for b in (_session(40.0, 60.0), _session(40.0, 60.0)) if b.environment]  # fmt: skip
    retiming = _retiming.compare_environments((_session(40.0), _session(40.0)), there, "python")
    (change,) = retiming.changes
    assert (change.verdict, retiming.basis) == ("same", "time")


# ------------------------------------------------------------------------------- false alarms


def test_the_same_kernel_gives_no_alarm_in_a_thousand_checks() -> None:
    """Sessions differ among themselves by 1.5 %, their rounds by 1 %: as on an H200, or worse."""
    generator = random.Random(7)

    def speed() -> Interval:
        off = generator.gauss(0, 0.015)
        rounds = [math.exp(generator.gauss(off, 0.01)) for _ in range(10)]
        return paired_speedup(rounds, [1.0] * 10)

    threshold = _retiming.THRESHOLD
    alarms = 0
    for _ in range(1000):
        then = speed()
        first = verdict(_retiming.change_of([then], [speed()]), threshold)
        second = verdict(_retiming.change_of([then], [speed()]), threshold)
        alarms += first == second == "slower"
    assert alarms < 10


def test_a_kernel_that_is_a_tenth_slower_is_found() -> None:
    generator = random.Random(7)
    fast = paired_speedup([generator.gauss(40.0, 0.2) for _ in range(10)], [54.0] * 10)
    slow = paired_speedup([generator.gauss(44.4, 0.2) for _ in range(10)], [54.0] * 10)
    assert verdict(_retiming.change_of([fast], [slow]), _retiming.THRESHOLD) == "slower"


def test_the_interpreter_of_the_workers_can_be_another() -> None:
    from triton_magics.execution.local.worker_environment import worker_command

    assert worker_command("gpu", python="/venv/bin/python")[0] == "/venv/bin/python"
    assert worker_command("gpu")[0] == sys.executable
