# ruff: noqa: F811 (a fixture is imported, and named again by each test that asks for it)
"""Ops of the user's own with other sizes and dtypes than the shipped ones, in the lab."""

from __future__ import annotations

import pytest

from tests.fake_executor import FakeExecutor
from tests.lab_harness import engine, lab  # noqa: F401 (fixtures)
from triton_magics.errors import UnknownName
from triton_magics.execution.job_requests import BenchJob, RunJob
from triton_magics.lab import Lab
from triton_magics.model import Benchmark
from triton_magics.rendering.views.benchmark import table_caption
from triton_magics.verbs._completion import Names

SOURCE = "import triton\n\n\ndef triton_own(x):\n    return x\n"
REFERENCE = "def reference(x): return x\ndef make_inputs(shape, dtype, device, generator): ...\n"


def own_op(lab: Lab, engine: FakeExecutor, dtype: str = "float32", **sizes: tuple[int, ...]) -> Lab:
    """Define the op, and a version of it that passed."""
    engine.own_sizes, engine.own_dtypes = sizes, (dtype,)
    lab.reference("own", REFERENCE)
    lab.write("own", "v1", SOURCE, cell_offset=1)
    lab.validate("own", "v1", dtypes=(dtype,))
    return lab


def test_one_size_is_timed_and_is_the_final(lab: Lab, engine: FakeExecutor) -> None:
    benchmark = own_op(lab, engine, only=(8, 40)).bench("own")
    assert (benchmark.sizes, benchmark.op_sizes) == (("only",), ("only",))
    assert benchmark.final_us("v1") == 800.0
    assert benchmark.speedup("v1") == benchmark.geomean_speedup("v1") == 900.0 / 800.0
    assert "final = mean over only" in table_caption(benchmark)
    state = lab.op_state("own").version("v1")
    assert state is not None
    assert state.is_timed


def test_named_sizes_are_timed_in_the_order_of_the_op(lab: Lab, engine: FakeExecutor) -> None:
    own_op(lab, engine, decode=(1, 40), prefill=(9, 40))
    assert lab.sizes("own") == ("decode", "prefill")
    benchmark = lab.bench("own", sizes=("7x13", "prefill", "decode"))
    assert benchmark.sizes == ("decode", "prefill", "7x13")
    assert "final = mean over the two sizes, without your own shapes" in table_caption(benchmark)
    assert lab.bench("own", sizes=("decode",)).final_us("v1") is None


def test_a_size_that_the_op_lacks_is_refused_with_its_own(lab: Lab, engine: FakeExecutor) -> None:
    own_op(lab, engine, decode=(1, 40), prefill=(9, 40))
    with pytest.raises(UnknownName, match="unknown size 'small'. Known: decode, prefill"):
        lab.bench("own", sizes=("small",))
    with pytest.raises(UnknownName, match="unknown size 'decod'. Did you mean 'decode'"):
        lab.run("own", "v1", size="decod")


def test_jobs_without_size_and_dtype_take_those_of_the_op(lab: Lab, engine: FakeExecutor) -> None:
    own_op(lab, engine, dtype="int32", decode=(1, 40), prefill=(9, 40))
    lab.run("own", "v1")
    lab.bench("own")
    run, bench = engine.jobs[-2:]
    assert isinstance(run, RunJob)
    assert (run.size, run.dtype) == ("decode", "int32")
    assert isinstance(bench, BenchJob)
    assert (bench.op_sizes, bench.dtype) == (("decode", "prefill"), "int32")


def test_sizes_of_the_op_are_completed(lab: Lab, engine: FakeExecutor) -> None:
    own_op(lab, engine, decode=(1, 40), prefill=(9, 40))
    names = Names(lambda: lab)
    assert list(names._of_kind("size", {"op": "own"})) == ["decode", "prefill"]
    assert list(names._of_kind("size", {"op": "sofmax"})) == ["small", "medium", "large"]


def test_an_older_benchmark_has_the_three_sizes(lab: Lab, engine: FakeExecutor) -> None:
    recorded = own_op(lab, engine).bench("own").model_dump(mode="json")
    del recorded["op_sizes"]
    assert Benchmark.model_validate(recorded).op_sizes == ("small", "medium", "large")
