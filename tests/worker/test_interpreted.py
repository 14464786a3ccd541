"""Timing in the interpreter: what it says meanwhile, leaves out, and takes for right."""

from __future__ import annotations

import pytest

from tests.worker.harness import CPU, Recorder
from tests.worker.sessions import benched, job
from triton_magics import ops
from triton_magics.model import Benchmark
from triton_magics.worker import bench, interpreted, oracle
from triton_magics.worker.cases import make_pristine
from triton_magics.worker.slots import case_of


def test_a_step_is_told_before_it_is_begun() -> None:
    told: list[str] = []

    class Listener(Recorder):
        def stage(self, text: str, done: int = 0, total: int = 0, patience_s: float = 0) -> None:
            told.append(f"{text}, {done} of {total}, {patience_s:.0f} s")

        def timing(self, timing: object) -> None:
            told.append("timed")

    answer, _ = bench.run(job(sizes=("small", "65x33"), runs=1, budget_s=100.0), Listener())
    assert isinstance(answer, Benchmark)
    begun = [i for i, words in enumerate(told) if words.startswith("timing v1_baseline at ")]
    assert [told[i].split(", ")[0] for i in begun] == [
        "timing v1_baseline at small", "timing v1_baseline at 65x33",
    ]  # fmt: skip
    assert [told[i + 1] for i in begun] == ["timed", "timed"]
    assert told[begun[0]].endswith("0 of 2, 100 s")  # twice its share: a run more may go beyond


@pytest.mark.parametrize(
    ("asked", "badge"),
    [
        ({"cold": False}, "--hot needs a GPU"),
        ({"timer": "graph"}, "--timer graph needs a GPU"),
        ({"census": True}, "--census needs a GPU"),
    ],
)
def test_what_needs_a_gpu_is_said_to_be_left_out(asked: dict[str, object], badge: str) -> None:
    assert badge in benched(runs=1, **asked).badges
    assert badge not in benched(runs=1).badges


def test_a_size_beyond_the_budget_names_the_option_that_gives_more() -> None:
    made = benched(sizes=("small", "large"), runs=1, budget_s=1.5)
    assert made.not_timed[0].reason.endswith("would take too long for --budget 1.5")


def test_an_output_is_wrong_only_beyond_what_the_inputs_themselves_are_worth() -> None:
    op = ops.load("layer_norm")
    case = case_of(op, "64x64", "float32", 3)
    x, *rest = make_pristine(op, case, CPU)
    given = (x + 1000, *rest)  # a mean far larger than the spread
    plain = oracle.expect(op, given, case, None, None, conditioned=False, told=False)
    wide = oracle.expect(op, given, case, None, None, told=False)
    assert (0.9 * wide.allowed[0] > plain.allowed[0]).any()
    between = wide.values[0] + 0.9 * wide.allowed[0]
    assert interpreted._wrong(op, given, between, case) is None
    beyond = wide.values[0] + 1.5 * wide.allowed[0]
    said = interpreted._wrong(op, given, beyond, case)
    assert said is not None
    assert float(said.split()[0]) == pytest.approx(1.5, rel=0.01)
