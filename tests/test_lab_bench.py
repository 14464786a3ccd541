# ruff: noqa: F811 (a fixture is imported, and named again by each test that asks for it)
"""Benchmarks of the lab: who is timed beside whom, with what, and who is not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.fake_executor import FakeExecutor, environment
from tests.lab_harness import engine, lab, write  # noqa: F401 (engine, lab: fixtures)
from triton_magics.config import Settings
from triton_magics.errors import BadValue, IllegalStep, UnknownName, UnknownVersion
from triton_magics.execution import Outcome
from triton_magics.lab import Lab
from triton_magics.model import Badge, BadgeCode, Status


def test_a_benchmark_says_means_finals_and_both_speedups(lab: Lab, engine: FakeExecutor) -> None:
    engine.times_us = {"v1": (1, 3, 54)}
    write(lab, "v1")
    lab.validate("softmax", "v1")
    benchmark = lab.bench("softmax", "v1", runs=3)
    timing = benchmark.timing("v1", "medium")
    assert timing is not None
    assert (timing.mean_us, timing.median_us, timing.std_us) == (3, 3, 0)
    assert (timing.min_us, timing.max_us, timing.samples_us) == (3, 3, (3, 3, 3))
    assert benchmark.final_us("torch") == pytest.approx(62 / 3)
    assert benchmark.speedup("v1") == pytest.approx(62 / 58)
    assert benchmark.geomean_speedup("v1") == pytest.approx((2 * 2 * 1) ** (1 / 3))


def test_bench_without_names_times_every_version_that_passed(
    lab: Lab, engine: FakeExecutor
) -> None:
    bad = write(lab, "v1")
    write(lab, "v2")
    engine.verdicts[bad] = Status.FAILED
    lab.validate("softmax", "all")
    assert lab.bench("softmax").versions == ("v2_tiling",)


def test_a_benchmark_carries_only_badges_of_its_validations(lab: Lab) -> None:
    write(lab, "v1")
    lab.validate("softmax", "v1", plan="quick")
    assert lab.bench("softmax").badges == (Badge(code=BadgeCode.QUICK_PLAN, version="v1"),)
    assert lab.bench("softmax").badges == (Badge(code=BadgeCode.QUICK_PLAN, version="v1"),)


def test_a_version_that_has_not_passed_is_not_timed(lab: Lab, engine: FakeExecutor) -> None:
    write(lab, "v1")
    with pytest.raises(IllegalStep, match="v1 has not passed a validation in float32 on this GPU"):
        lab.bench("softmax", "v1")
    lab.validate("softmax", "v1", dtypes=["float32"])
    assert lab.bench("softmax", "v1").passed
    with pytest.raises(IllegalStep, match="in float16"):
        lab.bench("softmax", "v1", dtype="float16")
    write(lab, "v1", "changed")
    with pytest.raises(IllegalStep, match="has not passed"):
        lab.bench("softmax", "v1")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [({"runs": 0}, "runs=0"), ({"runs": 5000}, "1 to 1000")],
)
def test_runs_out_of_range_are_refused(lab: Lab, arguments: dict[str, int], words: str) -> None:
    write(lab, "v1")
    lab.validate("softmax", "v1")
    with pytest.raises(BadValue, match=words):
        lab.bench("softmax", "v1", **arguments)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"against": ("torch.compil",)}, BadValue, "Did you mean 'torch.compile'"),
        ({"against": ("torch",)}, BadValue, "torch is timed beside every version"),
        ({"against": ("v9",)}, UnknownVersion, "v9"),
        ({"against": ("module:",)}, BadValue, "module:function"),
        ({"sizes": ("huge",)}, UnknownName, "unknown size 'huge'"),
        ({"sizes": ("0x5",)}, UnknownName, "or a shape such as 8192x151936"),
        ({"sizes": ()}, BadValue, "no size: name some of small,medium,large"),
        ({"dtype": "float23"}, UnknownName, "Did you mean 'float32'"),
        ({"budget": -1.0}, BadValue, "budget=-1: write seconds"),
        ({"timer": "grap"}, UnknownName, "Did you mean 'graph'"),
    ],
)
def test_what_can_not_be_timed_is_refused_and_nothing_runs(
    lab: Lab, engine: FakeExecutor, arguments: dict[str, Any], error: type[Exception], words: str
) -> None:
    write(lab, "v1")
    lab.validate("softmax", "v1")
    jobs = len(engine.jobs)
    with pytest.raises(error, match=words):
        lab.bench("softmax", **arguments)
    assert len(engine.jobs) == jobs


def test_against_a_version_compares_every_version_with_it(lab: Lab, engine: FakeExecutor) -> None:
    for version in ("v1", "v2", "v3"):
        write(lab, version)
        lab.validate("softmax", version)
    lab.bench("softmax", against=("v1", "torch.compile", "package.module:function"))
    job = engine.jobs[-1]
    assert [v.version for v in job.versions] == ["v1_baseline", "v2_tiling", "v3_coalesced"]
    assert job.against == ("torch.compile", "package.module:function")
    assert job.baselines == ("v1_baseline", "torch.compile", "package.module:function")
    lab.bench("softmax", "v3", against=("v1",))
    assert [v.version for v in engine.jobs[-1].versions] == ["v1_baseline", "v3_coalesced"]


def test_a_rival_that_has_not_passed_is_not_timed(lab: Lab) -> None:
    write(lab, "v1")
    write(lab, "v2")
    lab.validate("softmax", "v2")
    with pytest.raises(IllegalStep, match="v1 has not passed"):
        lab.bench("softmax", against=("v1",))
    assert lab.bench("softmax").versions == ("v2_tiling",)


def test_a_selftest_needs_no_op_and_one_that_was_lost_says_how(
    lab: Lab, engine: FakeExecutor
) -> None:
    assert lab.selftest().passed
    assert engine.jobs[-1].kind == "selftest"
    engine.answer = lambda job: Outcome(status="timeout", detail="no answer in 20 s")
    result = lab.selftest()
    assert (result.status, result.message) == (Status.TIMEOUT, "no answer in 20 s")


def test_timer_and_census_are_in_the_request(lab: Lab, engine: FakeExecutor) -> None:
    write(lab, "v1")
    lab.validate("softmax", "v1")
    lab.bench("softmax", timer="launch", census=True)
    assert (engine.jobs[-1].timer, engine.jobs[-1].census) == ("launch", True)


def test_lost_benchmark_names_its_shapes_and_baselines(lab: Lab, engine: FakeExecutor) -> None:
    write(lab, "v1")
    lab.validate("softmax", "v1")
    lost_job = Outcome(status="timeout", environment=environment("gpu"), detail="no answer")
    engine.answer = lambda job: lost_job
    benchmark = lab.bench("softmax", sizes=("8192x100", "7x13"), against=("m:f",))
    assert engine.jobs[-1].sizes == benchmark.sizes == ("8192x100", "7x13")
    assert benchmark.against == ("m:f",)


def test_own_shapes_are_timed_beside_the_three_sizes(lab: Lab, engine: FakeExecutor) -> None:
    write(lab, "v1")
    lab.validate("softmax", "v1")
    final_us = lab.bench("softmax").final_us("v1")
    lab.op("softmax", shapes=((8192, 151936),))
    benchmark = lab.bench("softmax")
    assert benchmark.sizes == ("small", "medium", "large", "8192x151936")
    own = benchmark.timing("v1", "8192x151936")
    assert own is not None
    assert (own.shape, own.mean_us) == ((8192, 151936), 800.0)
    assert benchmark.final_us("v1") == final_us
    assert lab.bench("softmax", sizes=("7x13", "small")).sizes == ("small", "7x13")
    with pytest.raises(UnknownName, match="unknown size '7x0'"):
        lab.bench("softmax", sizes=("7x0",))


def test_a_file_of_inputs_is_timed_in_place_of_the_sizes(
    lab: Lab, engine: FakeExecutor, tmp_path: Path
) -> None:
    (tmp_path / "x.npy").write_bytes(b"any")
    engine.own_sizes = {"file": (33, 100)}
    write(lab, "v1")
    lab.validate("softmax", "v1")
    with pytest.raises(BadValue, match="^--inputs is in place of the sizes; .* --sizes or --shape"):
        lab.bench("softmax", inputs="x.npy", sizes=("small",))
    with pytest.raises(BadValue, match="does not go with --again"):
        lab.bench("softmax", inputs="x.npy", again=True)
    benchmark = lab.bench("softmax", inputs="x.npy")
    job = engine.jobs[-1]
    assert (job.op.inputs.name, job.sizes, benchmark.sizes) == ("x.npy", ("file",), ("file",))
    assert Badge.of(BadgeCode.OWN_INPUTS, file="x.npy") in benchmark.badges
    assert benchmark.final_us("v1") is None


def test_backward_pass_alone_gives_no_final(lab: Lab, engine: FakeExecutor) -> None:
    source = "import triton\n\n\ndef triton_softmax_backward(grad_output, x):\n    return x\n"
    lab.write("softmax_backward", "v1", source, cell_offset=1)
    lab.validate("softmax_backward", "v1")
    whole = lab.bench("softmax_backward", "v1")
    with pytest.raises(BadValue, match="--backward-only does not go with --census"):
        lab.bench("softmax_backward", "v1", backward_only=True, census=True)
    alone = lab.bench("softmax_backward", "v1", backward_only=True)
    assert engine.jobs[-1].backward_only
    assert (alone.is_whole, alone.final_us("v1"), whole.is_whole) == (False, None, True)
    assert Badge.of(BadgeCode.BACKWARD_ONLY) in alone.badges
    state = lab.op_state("softmax_backward").version("v1")
    assert state is not None
    assert state.final_us == whole.final_us("v1")


def test_without_a_gpu_only_the_first_size_is_timed_by_default(tmp_path: Path) -> None:
    engine = FakeExecutor("interpreter")
    with Lab(tmp_path, engine=engine, settings=Settings()) as lab:
        lab.op("softmax")
        write(lab, "v1")
        lab.validate("softmax", "v1")
        assert lab.bench("softmax").sizes == ("small",)
        assert engine.jobs[-1].budget_s == 4.0
        assert lab.bench("softmax", sizes=("small", "large")).sizes == ("small", "large")
        assert engine.jobs[-1].budget_s == Settings().bench_budget_s
        lab.bench("softmax", budget=30.0)
        assert engine.jobs[-1].budget_s == 30.0


def test_without_a_gpu_static_figures_stand_beside_times(tmp_path: Path) -> None:
    with Lab(tmp_path, engine=FakeExecutor("interpreter"), settings=Settings()) as lab:
        write(lab, "v1")
        lab.validate("softmax", "v1")
        lab.inspect("softmax", "v1")
        measured = lab.bench("softmax")
        source = lab.source("softmax", "v1")
    (compiled,) = measured.compilations
    assert compiled.sha256 == source.sha256
