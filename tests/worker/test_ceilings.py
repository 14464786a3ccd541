"""Without CUPTI, or without ceilings, times are raw, and that is said."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.worker.harness import KERNELS, Recorder, version_of
from triton_magics import ops
from triton_magics.engine.protocol import BenchJob, OpRef
from triton_magics.model import Benchmark, Environment
from triton_magics.worker import bench, ceilings, lock, timers
from triton_magics.worker.load import load_version
from triton_magics.worker.resources import environment
from triton_magics.worker.timers import Call, Timer, Try

GPU = Environment(
    device_kind="gpu", device="NVIDIA H200", python="3.12", torch="2.11", triton="3.6",
    gpu_uuid="9dc7", driver="580",
)  # fmt: skip


class Steady(Timer):
    """Three microseconds for a tiny kernel, fifty for any other call."""

    def __init__(self, l2_bytes: int, *, cold: bool) -> None:
        self.cold = cold

    def settle(self) -> None:
        pass

    def tries(self, calls: Sequence[Call], todo: Sequence[int]) -> list[Try]:
        return [self.one(calls[i]) for i in todo]

    def one(self, call: Call) -> Try:
        call.before()
        call.fresh()
        value = call.act()
        return Try(3.0 if value is None else 50.0, call.kept(value), None)


def measured(monkeypatch: pytest.MonkeyPatch, known: ceilings.Ceilings | None) -> Benchmark:
    """A benchmark of a sum at 4x8, with these ceilings."""
    monkeypatch.setitem(bench.TIMERS, "gated", Steady)
    monkeypatch.setattr(bench, "_GAUGED", {})
    tiny = {"empty": lambda: None, "store": lambda: None}
    monkeypatch.setattr(timers, "tiny_kernels", lambda: tiny)
    ref = version_of(KERNELS / "sum_right.py", "sum")
    job = BenchJob(
        op=OpRef(name="sum"), versions=(ref,), sizes=("4x8",), runs=2, dtype="float32", seed=1,
        budget_s=0,
    )  # fmt: skip
    told = bench.measure(job, ops.load("sum"), (load_version(ref),), Recorder(), known=known)
    return bench._base(job).model_copy(update=told)


def known(cold: dict[str, float]) -> ceilings.Ceilings:
    return ceilings.Ceilings(
        measured="2026-11-21", copy_gbps=4000.0, matmul_tflops={}, cold=cold, hot={}
    )


def test_a_benchmark_is_net_of_what_its_own_process_says_that_the_timer_adds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = measured(monkeypatch, known({"empty": 0.5, "store": 0.8}))
    assert (made.floor_us, made.empty_kernel_us) == (3.0, 0.5)
    assert made.timer_us == pytest.approx(2.2)
    assert {round(t.samples_us[0], 6) for t in made.timings} == {47.8}
    assert bench.RAW not in made.badges


def test_a_process_gauges_once_and_not_in_a_rehearsal(monkeypatch: pytest.MonkeyPatch) -> None:
    measured(monkeypatch, None)
    assert bench._GAUGED == {}
    measured(monkeypatch, known({"empty": 0.5, "store": 0.8}))
    (found,) = bench._GAUGED.values()
    job = BenchJob(
        op=OpRef(name="sum"), versions=(), sizes=(), runs=1, dtype="float32", seed=1, budget_s=0
    )
    again = bench.gauged(job, "gated", known({"empty": 0.9, "store": 0.9}))
    assert again.added_us == found.added_us == pytest.approx(2.2)


@pytest.mark.parametrize("given", [None, known({})], ids=["no ceilings", "CUPTI refused"])
def test_without_cupti_times_are_raw_and_a_badge_says_so(
    monkeypatch: pytest.MonkeyPatch, given: ceilings.Ceilings | None
) -> None:
    made = measured(monkeypatch, given)
    assert bench.RAW in made.badges
    assert made.timer_us is None
    assert {t.samples_us[0] for t in made.timings} == {50.0}
    assert made.passed


def test_a_kernel_that_cupti_did_not_see_makes_all_of_them_unknown() -> None:
    spans = [0.5, 1.0, 0.7, 1.2, 0.6, 1.1]
    assert ceilings.by_kernel(spans, ["empty", "store"], 3) == {"empty": 0.6, "store": 1.1}
    assert ceilings.by_kernel(spans[1:], ["empty", "store"], 3) == {}
    assert ceilings.by_kernel([], ["empty", "store"], 3) == {}


def test_ceilings_that_can_not_be_measured_are_missing_and_that_is_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TRITON_MAGICS_CACHE", str(tmp_path))
    monkeypatch.setattr(lock, "LOCKS", tmp_path)
    monkeypatch.setattr(sys, "executable", "/bin/false")
    assert ceilings.ceilings(GPU, Recorder()) is None
    assert "could not measure this GPU's ceilings" in capsys.readouterr().err


def test_ceilings_are_read_where_they_were_measured_before(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TRITON_MAGICS_CACHE", str(tmp_path))
    monkeypatch.setattr(sys, "executable", "/bin/false")
    path = ceilings._path(GPU)
    path.parent.mkdir(parents=True)
    path.write_text(known({"empty": 0.5}).model_dump_json())
    assert ceilings.ceilings(GPU, Recorder()) == known({"empty": 0.5})
    assert environment().gpu_uuid is None  # and this one is no GPU's


def measured_by(script: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Where the ceilings are kept, with a shell script for the child that measures them."""
    monkeypatch.setenv("TRITON_MAGICS_CACHE", str(tmp_path))
    monkeypatch.setattr(lock, "LOCKS", tmp_path)
    child = tmp_path / "child"
    child.write_text(f"#!/bin/sh\n{script}\n")
    child.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(child))
    path = ceilings._path(GPU)
    path.parent.mkdir(parents=True)
    return path


@pytest.mark.parametrize("found", ["", '{"measured": "2026-', '{"measured": "2026-11-22"}'])
def test_ceilings_that_can_not_be_read_are_measured_anew(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, found: str
) -> None:
    (tmp_path / "right").write_text(known({"empty": 0.5}).model_dump_json())
    path = measured_by(f'cp {tmp_path}/right "$3"', monkeypatch, tmp_path)
    path.write_text(found)
    assert ceilings.ceilings(GPU, Recorder()) == known({"empty": 0.5})


def test_who_measures_without_an_end_is_stopped_and_that_is_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    measured_by("exec tail -f /dev/null", monkeypatch, tmp_path)
    monkeypatch.setattr(ceilings, "MEASURE_S", 0.1)
    assert ceilings.ceilings(GPU, Recorder()) is None
    assert "could not measure this GPU's ceilings:\nnot done in 0.1 s" in capfd.readouterr().err


def test_who_waits_while_another_measures_the_gpu_reads_that_and_does_not_measure_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TRITON_MAGICS_CACHE", str(tmp_path))
    monkeypatch.setattr(lock, "LOCKS", tmp_path)
    monkeypatch.setattr(sys, "executable", "/bin/false")
    path = ceilings._path(GPU)
    path.parent.mkdir(parents=True)
    other = lock.gpu_lock(GPU.gpu_uuid, alone=True, what=ceilings.MEASURING, waiting=print)
    other.__enter__()

    class Ends(Recorder):
        """The other is done as soon as somebody waits for it."""

        def stage(self, text: str, *counts: int, patience_s: float = 0.0) -> None:
            super().stage(text)
            if text.startswith("waiting"):
                path.write_text(known({"empty": 0.5}).model_dump_json())
                other.__exit__(None, None, None)

    waiting = Ends()
    assert ceilings.ceilings(GPU, waiting) == known({"empty": 0.5})
    assert "measuring this GPU (once per machine), for 0 s" in waiting.stages[0]
