"""Timing: in the interpreter for real, and the parts of a GPU session that need no GPU."""

from __future__ import annotations

import pytest
import torch

from tests.worker.harness import CPU, KERNELS, Recorder, version_of
from triton_magics import ops
from triton_magics.engine.protocol import BenchJob, OpRef
from triton_magics.model import Benchmark, Status, Timing
from triton_magics.worker import bench, oracle, verdicts
from triton_magics.worker.cases import same_bits
from triton_magics.worker.load import UserFault
from triton_magics.worker.slots import Slots, case_of, traffic


def job(kernel: str = "sum_right", op: str = "sum", **changes: object) -> BenchJob:
    given = {
        "op": OpRef(name=op),
        "versions": (version_of(KERNELS / f"{kernel}.py", op),),
        "sizes": ("small",),
        "runs": 3,
        "dtype": "float32",
        "seed": 5,
        "budget_s": 30.0,
        **changes,
    }
    return BenchJob(**given)


def benched(**changes: object) -> Benchmark:
    answer, _ = bench.run(job(**changes), Recorder())
    assert isinstance(answer, Benchmark)
    return answer


def test_the_interpreter_times_versions_only_and_labels_it() -> None:
    made = benched()
    assert (made.status, made.clock, made.providers) == (
        Status.PASSED, "interpreter", ("v1_baseline",),
    )  # fmt: skip
    assert "interpreter" in made.badges
    timing = made.timing("v1", "small")
    assert timing is not None
    assert len(timing.samples_us) == 3
    assert timing.min_us > 1000  # 256 programs, no interpreter is that quick
    assert made.speedup("v1") is None


def test_a_size_that_would_take_too_long_is_not_run_and_says_the_estimate() -> None:
    made = benched(sizes=("small", "large"), runs=1, budget_s=1.5)
    (gap,) = made.not_timed
    assert gap.size == "large"
    assert gap.estimate_s is not None
    assert gap.estimate_s > 0.75
    assert made.timing("v1", "large") is None
    assert made.final_us("v1") is None


def test_a_small_budget_means_fewer_runs_and_that_is_said() -> None:
    made = benched(runs=500, budget_s=0.5)
    timing = made.timing("v1", "small")
    assert timing is not None
    assert 1 <= len(timing.samples_us) < 500
    assert "fewer than 500 runs" in made.badges


def test_a_wrong_answer_in_a_timed_run_voids_the_benchmark() -> None:
    made = benched(kernel="returns_the_mean")
    assert made.status is Status.FAILED
    assert "wrong answer in a timed run at small" in str(made.message)


def test_a_version_that_raises_has_no_time_and_says_why() -> None:
    made = benched(kernel="divides_by_zero", op="softmax")
    assert made.status is Status.FAILED
    assert "ZeroDivisionError" in made.not_timed[0].reason


def test_bfloat16_is_refused_where_it_would_be_wrong() -> None:
    with pytest.raises(UserFault, match="bfloat16"):
        benched(dtype="bfloat16")


def test_an_unknown_rival_is_the_callers_to_mend() -> None:
    op = ops.load("sum")
    with pytest.raises(UserFault, match="module:function"):
        bench._providers(job(against=("no.such:thing",)), op, ())
    named = bench._providers(job(against=("math:fsum",)), op, ())
    assert [p.name for p in named] == ["torch", "math:fsum", verdicts.AGAIN]


def test_slots_never_hand_out_the_same_storage_twice_in_a_row_and_always_the_rounds_contents() -> (
    None
):
    op = ops.load("softmax")
    slots = Slots(op, case_of(op, "small", "float32", 1), CPU, n=5)
    seen = []
    for seed in (10, 11):
        slots.refill(seed)
        first, second = slots.next()[0], slots.next()[0]
        assert first.data_ptr() != second.data_ptr()
        assert same_bits(first, second)
        seen.append(first.clone())
    assert not torch.equal(*seen)


def test_the_answer_of_a_round_is_judged_against_its_own_contents() -> None:
    op = ops.load("softmax")
    slots = Slots(op, case_of(op, "small", "float32", 1), CPU, n=3)
    expected = oracle.expect(op, slots.pristine(0), slots.case, None, None)
    slots.refill(10)
    old = torch.softmax(slots.next()[0], -1)
    assert slots.wrong(old, expected) is None
    slots.refill(11)
    assert slots.wrong(old, expected) is not None
    right = torch.softmax(slots.next()[0], -1)
    assert slots.wrong(right, expected) is None
    assert slots.wrong(right * (1 + 1e-3), expected) is not None


def test_traffic_is_every_tensor_once() -> None:
    op = ops.load("softmax")
    slots = Slots(op, case_of(op, "small", "float32", 1), CPU, n=2)
    assert traffic(op, slots) == (2 * 256 * 256 * 4, 5 * 256 * 256)


def timing(provider: str, samples: tuple[float, ...]) -> Timing:
    return Timing(provider=provider, size="small", shape=(1,), clock="gpu", samples_us=samples)


def test_verdicts_compare_with_torch_and_neighbours_and_mind_the_control() -> None:
    base = (10.0, 10.1, 9.9, 10.0, 10.05)
    made, control = verdicts.compare(
        [
            timing("torch", base),
            timing("v1_a", tuple(b * 0.5 for b in base)),
            timing("v2_b", tuple(b * 0.5 for b in base)),
            timing(verdicts.AGAIN, tuple(b * 1.001 for b in base)),
        ],
        0.032,
        seed=1,
    )
    told = {(c.candidate, c.baseline): (round(c.ratio, 3), c.verdict) for c in made}
    assert told == {
        ("v1_a", "torch"): (2.0, "faster"),
        ("v2_b", "torch"): (2.0, "faster"),
        ("v2_b", "v1_a"): (1.0, "same"),
    }
    assert control[0].verdict == "same"


def test_a_restless_control_widens_what_counts_as_the_same() -> None:
    base = (10.0, 10.1, 9.9, 10.0, 10.05)
    rows = [timing("torch", base), timing("v1_a", tuple(b * 0.96 for b in base))]
    calm, _ = verdicts.compare([*rows, timing(verdicts.AGAIN, base)], None, seed=1)
    restless, _ = verdicts.compare(
        [*rows, timing(verdicts.AGAIN, tuple(b * 0.9 for b in base))], None, seed=1
    )
    assert calm[0].verdict == "faster"
    assert restless[0].verdict == "same"


def test_one_tick_of_the_clock_is_no_difference() -> None:
    rows = [timing("torch", (2.048,) * 5), timing("v1_a", (1.024,) * 5)]
    coarse, _ = verdicts.compare(rows, 1.024, seed=1)
    fine, _ = verdicts.compare(rows, 0.032, seed=1)
    assert coarse[0].verdict != "faster"
    assert fine[0].verdict == "faster"
