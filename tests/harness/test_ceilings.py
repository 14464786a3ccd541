"""Peak rates: the cache, the measurement, and raw times without CUPTI."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.harness.ceilings_kit import GPU, measured_by, rates_of
from tests.harness.kit import KERNELS, Recorder, version_of
from triton_magics import operators
from triton_magics.execution import sandbox
from triton_magics.execution.job_refs import OpRef
from triton_magics.execution.job_requests import BenchJob, SelfTestJob
from triton_magics.execution.local import sandbox_policy
from triton_magics.execution.protocol import Order, Reply
from triton_magics.harness import __main__ as worker
from triton_magics.harness.load import load_version
from triton_magics.harness.process import device, gpu_lock
from triton_magics.harness.process.device import environment
from triton_magics.harness.timers import gated_timer
from triton_magics.harness.timers.gated_timer import TimedAttempt, TimedCall, Timer
from triton_magics.harness.timing import bench_job, peak_rates
from triton_magics.model import Benchmark, SelfTest, Status


class Steady(Timer):
    """A timer: 3 us for a tiny kernel, 50 us for any other call."""

    def __init__(self, l2_bytes: int, *, cold: bool) -> None:
        self.cold = cold

    def synchronize(self) -> None:
        pass

    def time_once(self, calls: Sequence[TimedCall], todo: Sequence[int]) -> list[TimedAttempt]:
        return [self.one(calls[i]) for i in todo]

    def one(self, call: TimedCall) -> TimedAttempt:
        call.before_gate()
        call.fill_inputs()
        value = call.function()
        return TimedAttempt(3.0 if value is None else 50.0, call.copy_output(value), None)


def measure(monkeypatch: pytest.MonkeyPatch, rates: peak_rates.PeakRates | None) -> Benchmark:
    """Return a benchmark of a sum at 4x8 with these peak rates."""
    monkeypatch.setitem(bench_job.TIMERS, "gated", Steady)
    monkeypatch.setattr(bench_job, "_CALIBRATIONS", {})
    tiny = {"empty": lambda: None, "store": lambda: None}
    monkeypatch.setattr(gated_timer, "tiny_kernels", lambda: tiny)
    ref = version_of(KERNELS / "sum_right.py", "sum")
    job = BenchJob(
        op=OpRef(name="sum"), versions=(ref,), sizes=("4x8",), runs=2, dtype="float32", seed=1,
        budget_s=0,
    )  # fmt: skip
    update = bench_job.measure(
        job, operators.load("sum"), (load_version(ref),), Recorder(), peak_rates=rates
    )
    return bench_job._empty_benchmark(job, operators.load("sum")).evolve(**update)


def test_times_are_net_of_the_calibrated_timer_overhead(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    benchmark = measure(monkeypatch, rates_of({"empty": 0.5, "store": 0.8}))
    assert (benchmark.floor_us, benchmark.empty_kernel_us) == (3.0, 0.5)
    assert benchmark.timer_us == pytest.approx(2.2)
    assert {round(t.samples_us[0], 6) for t in benchmark.timings} == {47.8}
    assert bench_job.RAW_TIMES not in benchmark.badges


def test_process_calibrates_once_and_not_during_warm_up(monkeypatch: pytest.MonkeyPatch) -> None:
    measure(monkeypatch, None)
    assert bench_job._CALIBRATIONS == {}
    measure(monkeypatch, rates_of({"empty": 0.5, "store": 0.8}))
    (calibration,) = bench_job._CALIBRATIONS.values()
    job = BenchJob(
        op=OpRef(name="sum"), versions=(), sizes=(), runs=1, dtype="float32", seed=1, budget_s=0
    )
    second = bench_job.calibrate_timer(job, "gated", rates_of({"empty": 0.9, "store": 0.9}))
    assert second.added_us == calibration.added_us == pytest.approx(2.2)


@pytest.mark.parametrize("rates", [None, rates_of({})], ids=["no peak rates", "CUPTI refused"])
def test_times_are_raw_with_a_badge_without_cupti(
    monkeypatch: pytest.MonkeyPatch, rates: peak_rates.PeakRates | None
) -> None:
    benchmark = measure(monkeypatch, rates)
    assert bench_job.RAW_TIMES in benchmark.badges
    assert benchmark.timer_us is None
    assert {t.samples_us[0] for t in benchmark.timings} == {50.0}
    assert benchmark.passed


def test_one_missing_span_makes_all_kernel_times_unrates_of() -> None:
    spans = [0.5, 1.0, 0.7, 1.2, 0.6, 1.1]
    assert peak_rates.median_by_kernel(spans, ["empty", "store"], 3) == {"empty": 0.6, "store": 1.1}
    assert peak_rates.median_by_kernel(spans[1:], ["empty", "store"], 3) == {}
    assert peak_rates.median_by_kernel([], ["empty", "store"], 3) == {}


def test_failed_measurement_returns_none_with_a_message(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TRITON_MAGICS_CACHE", str(tmp_path))
    monkeypatch.setattr(gpu_lock, "LOCKS", tmp_path)
    monkeypatch.setattr(sys, "executable", "/bin/false")
    assert peak_rates.get_peak_rates(GPU, Recorder()) is None
    assert "could not measure this GPU's peak rates" in capsys.readouterr().err


def test_cached_peak_rates_are_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TRITON_MAGICS_CACHE", str(tmp_path))
    monkeypatch.setattr(sys, "executable", "/bin/false")
    path = peak_rates._path(GPU)
    path.parent.mkdir(parents=True)
    path.write_text(rates_of({"empty": 0.5}).model_dump_json())
    assert peak_rates.get_peak_rates(GPU, Recorder()) == rates_of({"empty": 0.5})
    assert environment().gpu_uuid is None  # and this one is no GPU's


@pytest.mark.parametrize("content", ["", '{"measured": "2026-', '{"measured": "2026-11-22"}'])
def test_damaged_cache_file_is_measured_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: str
) -> None:
    (tmp_path / "right").write_text(rates_of({"empty": 0.5}).model_dump_json())
    path = measured_by(f'cp {tmp_path}/right "$4"', monkeypatch, tmp_path)
    path.write_text(content)
    assert peak_rates.get_peak_rates(GPU, Recorder()) == rates_of({"empty": 0.5})


def test_measurement_times_out_with_a_message(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    measured_by("exec tail -f /dev/null", monkeypatch, tmp_path)
    monkeypatch.setattr(peak_rates, "MEASURE_S", 0.1)
    assert peak_rates.get_peak_rates(GPU, Recorder()) is None
    assert (
        "could not measure this GPU's peak rates:\nnot finished after 0.1 s"
        in capfd.readouterr().err
    )


def test_waiting_process_reads_the_other_ones_measurement(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TRITON_MAGICS_CACHE", str(tmp_path))
    monkeypatch.setattr(gpu_lock, "LOCKS", tmp_path)
    monkeypatch.setattr(sys, "executable", "/bin/false")
    path = peak_rates._path(GPU)
    path.parent.mkdir(parents=True)
    other = gpu_lock.gpu_lock(
        GPU.gpu_uuid, exclusive=True, purpose=peak_rates.MEASURING, on_wait=print
    )
    other.__enter__()

    class ReleasesLock(Recorder):
        """Release the lock as soon as this process waits for it."""

        def stage(self, text: str, *counts: int, patience_s: float = 0.0) -> None:
            super().stage(text)
            if text.startswith("waiting"):
                path.write_text(rates_of({"empty": 0.5}).model_dump_json())
                other.__exit__(None, None, None)

    report = ReleasesLock()
    assert peak_rates.get_peak_rates(GPU, report) == rates_of({"empty": 0.5})
    assert "measuring this GPU (once per machine), for 0 s" in report.stages[0]


# ------------------------------------------------------------------------------- in a sandbox


class SubjectThatTimes:
    """The link to a subject process, which reads the ceilings while it times."""

    can_share = False

    def __init__(self) -> None:
        self.files_there: list[bool] = []

    def request(self, function: str, kind: type, /, **arguments: object) -> Reply:
        self.files_there.append(peak_rates._path(GPU).exists())
        order = arguments["order"]
        assert isinstance(order, Order)
        return Reply(nonce=order.nonce, answer=SelfTest(status=Status.NO_GPU, environment=GPU))


def test_the_judge_measures_before_the_subject_process_times(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "right").write_text(rates_of({}).model_dump_json())
    measured_by(f'cp {tmp_path}/right "$4"', monkeypatch, tmp_path)
    monkeypatch.setattr(device, "environment", lambda: GPU)
    link: Any = SubjectThatTimes()
    order = Order(nonce="1", job=SelfTestJob(seed=1, budget_s=1))
    worker._forward(order, print, link, Recorder())
    assert link.files_there == [True]


@pytest.mark.parametrize("runs_versions", [True, False])
def test_only_the_judge_measures_in_a_sandbox(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, runs_versions: bool
) -> None:
    """A version that could write them would change the limits of all other versions."""
    (tmp_path / "scratch" / "tmp").mkdir(parents=True)
    (tmp_path / "scratch" / "right").write_text(rates_of({}).model_dump_json())
    script = f'touch {tmp_path}/scratch/ran && cp {tmp_path}/scratch/right "$4"'
    path = measured_by(script, monkeypatch, tmp_path, "scratch")
    monkeypatch.setenv(sandbox.VARIABLE, sandbox_policy.make_policy("gpu").to_text())
    monkeypatch.setenv(sandbox.SCRATCH, str(tmp_path / "scratch"))
    if not (child := os.fork()):
        sandbox.enter_from_environment(runs_versions=runs_versions)
        rates = peak_rates.get_peak_rates(GPU, Recorder())
        os._exit(int(rates is not None))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == int(not runs_versions)
    assert (tmp_path / "scratch" / "ran").exists() == path.exists() == (not runs_versions)
