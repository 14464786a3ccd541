"""Timing: in the interpreter for real, and the parts of a GPU session that need no GPU."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import replace
from types import ModuleType

import pytest
import torch

from tests.worker.harness import CPU, KERNELS, Recorder, version_of
from triton_magics import ops
from triton_magics.engine.protocol import BenchJob, OpRef
from triton_magics.model import Benchmark, Status, Timing
from triton_magics.worker import bench, oracle, verdicts
from triton_magics.worker.cases import same_bits
from triton_magics.worker.load import Loaded, UserFault
from triton_magics.worker.precision import Precision
from triton_magics.worker.slots import Slots, case_of, traffic
from triton_magics.worker.timers import Sample, Unstable


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


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("no.such:thing", "ModuleNotFoundError: No module named 'no'"),
        ("math:no_such", "no attribute 'no_such'"),
        ("math:pi", "pi is no function"),
    ],
)
def test_a_rival_that_can_not_be_called_is_refused_without_a_gpu_too(name: str, words: str) -> None:
    with pytest.raises(UserFault, match=rf"--against {name}: .*{words}"):
        benched(against=(name,))


def test_in_the_interpreter_a_rival_is_not_timed_and_that_is_said() -> None:
    made = benched(against=("math:fsum",), rivals=("math:fsum",), runs=1)
    assert made.against == ("math:fsum",)
    assert [(g.provider, g.size, g.reason) for g in made.not_timed] == [
        ("math:fsum", "small", "only a GPU's times are compared")
    ]


def test_a_shape_of_ones_own_is_timed_in_place_of_a_size() -> None:
    made = benched(sizes=("7x13",), runs=1)
    (timing,) = made.timings
    assert (timing.size, timing.shape) == ("7x13", (7, 13))
    assert made.final_us("v1") is None


def test_a_shape_that_the_op_makes_no_inputs_of_is_refused_with_its_sizes() -> None:
    with pytest.raises(UserFault, match=r"matmul makes no inputs of shape 7x13 .* small 256x"):
        benched(kernel="matmul_right", op="matmul", sizes=("7x13",))


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
    calm, _ = verdicts.compare([*rows, timing(verdicts.AGAIN, base)], None)
    restless, _ = verdicts.compare(
        [*rows, timing(verdicts.AGAIN, tuple(b * 0.9 for b in base))], None
    )
    assert calm[0].verdict == "faster"
    assert restless[0].verdict == "same"


def test_one_tick_of_the_clock_is_no_difference() -> None:
    rows = [timing("torch", (2.048,) * 5), timing("v1_a", (1.024,) * 5)]
    coarse, _ = verdicts.compare(rows, 1.024)
    fine, _ = verdicts.compare(rows, 0.032)
    assert coarse[0].verdict != "faster"
    assert fine[0].verdict == "faster"


# ------------------------------------------------------- a GPU session, its timer by a script


class ScriptedTimer:
    """Calls for real; the time of each call comes from a script, by who called."""

    def __init__(self, raw_us: Callable[[], float]) -> None:
        self.raw_us = raw_us

    def sample(self, call: Callable[[], object], poison: Callable[[], None]) -> Sample:
        return Sample(self.raw_us(), call(), ())

    def settle(self) -> None:
        pass


class LateTimer(ScriptedTimer):
    """Asks the script after the call, so that it may depend on who was called."""

    def sample(self, call: Callable[[], object], poison: Callable[[], None]) -> Sample:
        value = call()
        return Sample(self.raw_us(), value, ())


def session(
    *providers: bench.Provider, raw_us: Callable[[], float] = lambda: 100.0, **changes: object
) -> bench.Session:
    """A session over scripted times; the ops and their answers are real."""
    torchs = bench.Provider("torch", ops.load("sum").reference)
    return bench.Session(
        job=job(**{"runs": 10, **changes}),
        op=ops.load("sum"),
        providers=(torchs, *providers, bench.Provider(verdicts.AGAIN, ops.load("sum").reference)),
        timer=ScriptedTimer(raw_us),
        report=Recorder(),
        correction_us=2.5,
        tick_us=0.032,
        deadline=time.monotonic() + 60,
    )


def provider(call: Callable[..., object], name: str = "v1_a") -> bench.Provider:
    """A version whose code is a Python function."""
    loaded = Loaded(version_of(KERNELS / "sum_right.py", "sum"), ModuleType("made_up"), call)
    return bench.Provider(name, call, loaded)


def right(x: torch.Tensor) -> torch.Tensor:
    return x.sum(-1)


def test_every_version_is_compared_with_each_rival() -> None:
    times = {"torch": 10.0, "v1_a": 8.0, "v2_b": 5.0, "v3_c": 4.0, "m:f": 6.0}
    net = {name: [us] * 10 for name, us in times.items()}
    made, _ = verdicts.compared(net, None, "small", ("m:f", "v1_a"))
    against_torch = {(n, "torch") for n in times if n != "torch"}
    rivals = {("v1_a", "m:f"), ("v2_b", "m:f"), ("v3_c", "m:f"), ("v2_b", "v1_a"), ("v3_c", "v1_a")}
    assert {(c.candidate, c.baseline) for c in made} == against_torch | rivals | {("v3_c", "v2_b")}
    told = {(c.candidate, c.baseline): c.verdict for c in made}
    assert (told["v1_a", "m:f"], told["v2_b", "m:f"]) == ("slower", "faster")


def test_a_rival_that_computes_something_else_has_no_time_and_the_rest_stands() -> None:
    rival = bench.Provider("m:twice", lambda x: 2 * x.sum(-1))
    one = session(provider(right), rival, rivals=("m:twice",))
    made = bench.all_sizes(one)
    assert made["status"] is Status.PASSED
    assert [t.provider for t in made["timings"]] == ["torch", "v1_a"]
    (gap,) = made["not_timed"]
    assert gap.provider == "m:twice"
    assert gap.reason.startswith("it does not compute what sum is: ")


def test_who_changes_torchs_precision_is_told_and_nobody_is_timed_under_it() -> None:
    seen = set()

    def meddles(x: torch.Tensor) -> torch.Tensor:
        seen.add(torch.backends.cuda.matmul.fp32_precision)
        torch.set_float32_matmul_precision("medium")
        return right(x)

    before = torch.get_float32_matmul_precision()
    one = session(provider(meddles), raw_us=lambda: 100.0)
    made = bench.all_sizes(one)
    assert made["status"] is Status.PASSED
    assert one.meddlers == {"v1_a"}
    assert torch.get_float32_matmul_precision() == before
    assert torch.backends.cuda.matmul.allow_tf32 is False


@pytest.mark.parametrize(
    "meddle",
    [
        lambda: setattr(torch.backends.cuda.matmul, "allow_tf32", True),
        lambda: setattr(torch.backends.cuda.matmul, "fp32_precision", "tf32"),
        lambda: setattr(torch.backends, "fp32_precision", "tf32"),
        lambda: torch.set_float32_matmul_precision("high"),
        lambda: setattr(
            torch.backends.cuda.matmul, "allow_bf16_reduced_precision_reduction", False
        ),
    ],
)
def test_precision_is_put_back_whichever_way_it_was_changed(meddle: Callable[[], None]) -> None:
    precision = Precision()
    assert precision.put_back() is False
    meddle()
    assert precision.put_back() is True
    assert precision.put_back() is False
    assert torch.backends.cuda.matmul.allow_tf32 is False  # also: torch refuses no product


def test_net_is_raw_without_what_the_timer_adds() -> None:
    made = bench.all_sizes(session(provider(right)))
    assert made["status"] is Status.PASSED
    for timing in made["timings"]:
        assert (timing.raw_us[0], timing.samples_us[0], timing.calls) == (100.0, 97.5, 1)
        assert len(timing.samples_us) == 10


def test_torch_compile_knows_the_shape_at_every_size() -> None:
    seen = []

    def told(graph: torch.fx.GraphModule, inputs: list[object]) -> Callable[..., object]:
        seen.append([tuple(x.shape) if isinstance(x, torch.Tensor) else x for x in inputs])
        return graph.forward

    compiled = bench.Provider(bench.COMPILE, torch.compile(right, backend=told))
    made = bench.all_sizes(
        session(compiled, sizes=("small", "medium"), against=(bench.COMPILE,), runs=2)
    )
    assert [t.provider for t in made["timings"]].count(bench.COMPILE) == 2
    assert seen == [[(256, 256)], [(1024, 1024)]]  # of any size, an input would be a symbol


def test_a_short_call_is_made_several_times_a_run() -> None:
    made = bench.all_sizes(session(provider(right), raw_us=lambda: 5.5))
    assert {t.calls for t in made["timings"]} == {10}
    longest = bench.all_sizes(session(provider(right), raw_us=lambda: 2.6))
    assert {t.calls for t in longest["timings"]} == {bench.MAX_CALLS}


def test_a_version_that_fails_at_one_size_is_missing_there_and_the_rest_stands() -> None:
    def small_only(x: torch.Tensor) -> torch.Tensor:
        if x.numel() > 256 * 256:
            raise ValueError("too many columns for me")
        return right(x)

    made = bench.all_sizes(session(provider(small_only), sizes=("small", "medium")))
    assert made["status"] is Status.PASSED
    told = {(t.provider, t.size) for t in made["timings"]}
    assert told == {("torch", "small"), ("v1_a", "small"), ("torch", "medium")}
    (gap,) = made["not_timed"]
    assert (gap.provider, gap.size) == ("v1_a", "medium")
    assert "too many columns for me" in gap.reason


def test_a_version_out_of_memory_at_one_size_is_missing_there() -> None:
    def hungry(x: torch.Tensor) -> torch.Tensor:
        raise torch.OutOfMemoryError("CUDA out of memory")

    made = bench.all_sizes(session(provider(hungry)))
    assert [(g.provider, g.reason) for g in made["not_timed"]] == [("v1_a", "out of GPU memory")]
    assert [t.provider for t in made["timings"]] == ["torch"]


def test_a_size_whose_inputs_do_not_fit_is_missing_for_all() -> None:
    one = session(provider(right), sizes=("small", "medium"))
    reference = one.op.reference

    def fits(x: torch.Tensor) -> torch.Tensor:
        if x.numel() > 256 * 256:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return reference(x)

    small = replace(one, op=replace(one.op, reference=fits))
    made = bench.all_sizes(small)
    assert [(g.size, g.provider) for g in made["not_timed"]] == [("medium", None)]
    assert {t.size for t in made["timings"]} == {"small"}


def test_a_shape_of_ones_own_that_does_not_fit_is_missing_and_the_sizes_stand() -> None:
    one = session(provider(right), sizes=("small", "300x300", "8192x151936"))
    make = one.op.make_inputs

    def fits(shape: tuple[int, ...], *rest: object) -> tuple[torch.Tensor, ...]:
        if torch.Size(shape).numel() > 2**24:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return make(shape, *rest)

    made = bench.all_sizes(replace(one, op=replace(one.op, make_inputs=fits)))
    assert {(t.size, t.shape) for t in made["timings"]} == {
        ("small", (256, 256)), ("300x300", (300, 300)),
    }  # fmt: skip
    (gap,) = made["not_timed"]
    assert (gap.size, gap.provider) == ("8192x151936", None)
    assert gap.reason == "does not fit the GPU's free memory"


def test_the_interpreter_times_a_shape_of_ones_own_unless_it_is_too_large() -> None:
    made = benched(sizes=("small", "5x13", "8192x151936"), runs=1)
    assert [t.shape for t in made.timings] == [(256, 256), (5, 13)]
    (gap,) = made.not_timed
    assert (gap.size, gap.provider) == ("8192x151936", "v1_baseline")
    assert "too large for the interpreter" in gap.reason


def test_after_a_cuda_error_what_was_timed_is_kept() -> None:
    def breaks(x: torch.Tensor) -> torch.Tensor:
        if x.numel() > 256 * 256:
            raise RuntimeError("CUDA error: an illegal memory access was encountered")
        return right(x)

    made = bench.all_sizes(session(provider(breaks), sizes=("small", "medium")))
    assert made["status"] is Status.CRASHED
    assert "v1_a at medium" in made["message"]
    assert {(t.provider, t.size) for t in made["timings"]} == {
        ("torch", "small"), ("v1_a", "small"),
    }  # fmt: skip


def test_a_provider_without_a_valid_run_is_missing_and_says_why() -> None:
    def taken(_: torch.Tensor) -> torch.Tensor:
        raise Unstable("no valid run in 4 tries: the host was slower than the gate (4 times)")

    made = bench.all_sizes(session(provider(taken)))
    assert "slower than the gate" in made["not_timed"][0].reason
    assert [t.provider for t in made["timings"]] == ["torch"]


def test_every_timed_output_is_checked() -> None:
    calls = 0

    def sometimes(x: torch.Tensor) -> torch.Tensor:
        nonlocal calls
        calls += 1
        return right(x) * (2.0 if calls == 57 else 1.0)

    made = bench.all_sizes(session(provider(sometimes), raw_us=lambda: 5.5))
    assert made["status"] is Status.FAILED
    assert "v1_a gave a wrong answer in a timed run" in made["message"]


def test_rounds_are_added_only_where_a_verdict_is_open() -> None:
    draw = random.Random(1)
    calm = bench.all_sizes(session(provider(right), raw_us=lambda: 100 + draw.gauss(0, 0.1)))
    restless = bench.all_sizes(session(provider(right), raw_us=lambda: 100 + draw.gauss(0, 4)))
    assert {len(t.extra_us) for t in calm["timings"]} == {0}
    assert {len(t.extra_us) for t in restless["timings"]} == {90}
    assert {len(t.samples_us) for t in restless["timings"]} == {10}


def test_extra_rounds_leave_out_who_is_decided() -> None:
    draw, called = random.Random(2), [""]
    made_by = {"v1_a": 100.0, "v2_b": 100.0, "torch": 200.0}

    def named(name: str) -> bench.Provider:
        def call(x: torch.Tensor) -> torch.Tensor:
            called[0] = name
            return right(x)

        return provider(call, name)

    def raw_us() -> float:
        return made_by[called[0]] * (1 + draw.gauss(0, 0.03))

    one = session(named("v1_a"), named("v2_b"))
    slow = bench.Provider("torch", named("torch").call)
    again = bench.Provider(verdicts.AGAIN, named("torch").call)
    timer = LateTimer(raw_us)
    made = bench.all_sizes(replace(one, providers=(slow, *one.providers[1:3], again), timer=timer))
    rounds = {t.provider: len(t.extra_us) for t in made["timings"]}
    assert rounds["torch"] == 0
    assert rounds["v1_a"] == rounds["v2_b"] > 0
