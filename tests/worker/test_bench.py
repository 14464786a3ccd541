"""Timing: in the interpreter for real, and the parts of a GPU session that need no GPU."""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from types import ModuleType

import pytest
import torch

from tests.worker.harness import CPU, KERNELS, Recorder, version_of
from triton_magics import ops
from triton_magics.engine.protocol import BenchJob, OpRef
from triton_magics.model import SIZES, Benchmark, Status, Timing
from triton_magics.worker import bench, oracle, timers, verdicts
from triton_magics.worker.cases import same_bits
from triton_magics.worker.census import BLIND, CALLS, Ran, census
from triton_magics.worker.graph_timer import NotCaptured
from triton_magics.worker.load import Loaded, UserFault, load_version
from triton_magics.worker.precision import Precision
from triton_magics.worker.slots import Slots, case_of, traffic
from triton_magics.worker.timers import Call, Gate, Sample, Timer, Try, Unstable


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


def test_in_the_interpreter_other_timers_and_the_census_are_left_out_and_that_is_said() -> None:
    made = benched(timer="graph", census=True, runs=1)
    assert made.badges == ("interpreter", "--timer graph needs a GPU", "--census needs a GPU")
    assert {t.clock for t in made.timings} == {"interpreter"}
    assert made.census == ()


def test_a_shape_of_ones_own_is_timed_in_place_of_a_size() -> None:
    made = benched(sizes=("7x13",), runs=1)
    (timing,) = made.timings
    assert (timing.size, timing.shape) == ("7x13", (7, 13))
    assert made.final_us("v1") is None


def test_a_shape_that_the_op_makes_no_inputs_of_is_refused_with_its_sizes() -> None:
    with pytest.raises(UserFault, match=r"matmul makes no inputs of shape 7x13 .* small 256x"):
        benched(kernel="matmul_right", op="matmul", sizes=("7x13",))


def inputs(slots: Slots) -> torch.Tensor:
    """The next set's first tensor, with its contents."""
    (call,) = slots.calls(lambda *given: given, 1)
    call.before()
    call.fresh()
    return call.act()[0]


def outputs(slots: Slots, function: Callable[..., torch.Tensor], n: int = 1) -> list[torch.Tensor]:
    """What is kept of the outputs of n calls."""
    kept = []
    for call in slots.calls(lambda x: function(x, -1), n):
        call.before()
        call.fresh()
        kept.append(call.kept(call.act()).clone())
    return kept


def test_slots_never_hand_out_the_same_storage_twice_in_a_row_and_always_the_rounds_contents() -> (
    None
):
    op = ops.load("softmax")
    slots = Slots(op, case_of(op, "small", "float32", 1), CPU, n=5)
    seen = []
    for seed in (10, 11):
        slots.refill(seed)
        first, second = inputs(slots), inputs(slots)
        assert first.data_ptr() != second.data_ptr()
        assert same_bits(first, second)
        seen.append(first.clone())
    assert not torch.equal(*seen)


def test_the_answer_of_a_round_is_judged_against_its_own_contents() -> None:
    op = ops.load("softmax")
    slots = Slots(op, case_of(op, "small", "float32", 1), CPU, n=3)
    slots.refill(10)
    (old,) = outputs(slots, torch.softmax)
    assert slots.wrong([old]) is None
    slots.refill(11)
    assert slots.wrong([old]) is not None
    (right,) = outputs(slots, torch.softmax)
    assert slots.wrong([right]) is None
    assert slots.wrong([right * (1 + 1e-3)]) is not None
    assert slots.wrong([right, right, right * (1 + 1e-3)]) is not None
    assert "shapes" in str(slots.wrong([right[:, :5]]))
    assert "dtypes" in str(slots.wrong([right.half()]))


def test_an_op_with_a_check_of_its_own_gets_the_output_as_the_version_returned_it() -> None:
    op = ops.load("dropout")
    slots = Slots(op, case_of(op, "small", "float32", 1), CPU, n=2)
    slots.refill(10)
    for function, wrong in ((op.reference, False), (lambda x, p, seed: 0.9 * x, True)):
        kept = []
        for call in slots.calls(function, 2):
            call.before()
            call.fresh()
            kept.append(call.kept(call.act()))
        assert (slots.wrong(kept) is not None) is wrong


@pytest.mark.parametrize(
    ("off", "right"), [(0.99, True), (1.01, False), (float("nan"), False), (float("inf"), False)]
)
def test_the_quick_check_knows_what_is_allowed(off: float, right: bool) -> None:
    value, allowed = torch.full((5, 7), 3.0, dtype=torch.float64), torch.full((5, 1), 0.5).double()
    got = value.clone()
    got[4, 6] += 0.5 * off
    assert oracle.within(got, value, allowed) is right
    assert oracle.judge(got, value, allowed).right is right


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


def test_one_tick_is_a_share_of_the_two_that_are_compared() -> None:
    short, long = (1.4,) * 10, (12.0,) * 10
    rows = [
        timing("torch", short), timing("v1_a", long),
        timing("v2_b", tuple(us * 1.016 for us in long)), timing(verdicts.AGAIN, short),
    ]  # fmt: skip
    told, (control,) = verdicts.compare(rows, 0.032)
    found = {(c.candidate, c.baseline): c for c in told}
    assert found["v2_b", "v1_a"].verdict == "slower"
    assert found["v2_b", "v1_a"].threshold == 0.01
    assert control.threshold == pytest.approx(0.032 / 1.4)
    assert found["v1_a", "torch"].threshold == pytest.approx(0.032 / 1.4)


# ------------------------------------------------------- a GPU session, its timer by a script


class ScriptedTimer(Timer):
    """Calls for real; the time of each call comes from a script, by who called."""

    def __init__(self, raw_us: Callable[[], float]) -> None:
        self.raw_us = raw_us

    def run(self, calls: Sequence[Call]) -> list[Sample]:
        return [self.one(call) for call in calls]

    def tries(self, calls: Sequence[Call], todo: Sequence[int]) -> list[Try]:
        raise NotImplementedError

    def one(self, call: Call) -> Sample:
        call.before()
        call.fresh()
        return Sample(self.raw_us(), call.kept(call.act()), ())

    def settle(self) -> None:
        pass


class LateTimer(ScriptedTimer):
    """Asks the script after the call, so that it may depend on who was called."""

    def one(self, call: Call) -> Sample:
        call.fresh()
        value = call.act()
        return Sample(self.raw_us(), call.kept(value), ())


def session(
    *providers: bench.Provider, raw_us: Callable[[], float] = lambda: 100.0, **changes: object
) -> bench.Session:
    """A session over scripted times, on small tensors; the op and its answers are real."""
    op = replace(ops.load("sum"), sizes={"small": (16, 16), "medium": (32, 32), "large": (64, 64)})
    torchs = bench.Provider("torch", op.reference)
    return bench.Session(
        job=job(**{"runs": 10, **changes}),
        op=op,
        providers=(torchs, *providers, bench.Provider(verdicts.AGAIN, op.reference)),
        watch=bench.Watch(ScriptedTimer(raw_us), added_us=2.5, tick_us=0.032),
        report=Recorder(),
        deadline=time.monotonic() + 60,
    )


def by(timer: Timer, one: bench.Session) -> bench.Session:
    """The same session by another timer."""
    return replace(one, watch=replace(one.watch, timer=timer))


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
    assert seen == [[(16, 16)], [(32, 32)]]  # of any size, an input would be a symbol


def test_a_short_call_is_made_several_times_a_run() -> None:
    made = bench.all_sizes(session(provider(right), raw_us=lambda: 5.5))
    assert {t.calls for t in made["timings"]} == {10}
    longest = bench.all_sizes(session(provider(right), raw_us=lambda: 2.6))
    assert {t.calls for t in longest["timings"]} == {timers.MAX_CALLS}


def test_a_version_that_fails_at_one_size_is_missing_there_and_the_rest_stands() -> None:
    def small_only(x: torch.Tensor) -> torch.Tensor:
        if x.numel() > 16 * 16:
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
        if x.numel() > 16 * 16:
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
        ("small", (16, 16)), ("300x300", (300, 300)),
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
        if x.numel() > 16 * 16:
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


def test_work_that_does_not_wait_for_the_stream_computes_from_what_was_there_before() -> None:
    class Hasty(ScriptedTimer):
        """Calls while the gate is still closed, as a stream of its own does."""

        def one(self, call: Call) -> Sample:
            call.before()
            value = call.act()
            call.fresh()
            return Sample(100.0, call.kept(value), ())

    made = bench.all_sizes(by(Hasty(lambda: 100.0), session(provider(right))))
    assert made["status"] is Status.FAILED
    assert "v1_a gave a wrong answer in a timed run" in made["message"]


def test_work_that_ends_after_the_call_is_missing_from_what_is_checked() -> None:
    late: list[tuple[torch.Tensor, torch.Tensor]] = []

    def unfinished(x: torch.Tensor) -> torch.Tensor:
        out = torch.full((x.shape[0],), float("nan"))
        late.append((out, right(x)))
        return out

    class Late(ScriptedTimer):
        def run(self, calls: Sequence[Call]) -> list[Sample]:
            samples = super().run(calls)
            for out, value in late:
                out.copy_(value)
            return samples

    made = bench.all_sizes(by(Late(lambda: 100.0), session(provider(unfinished))))
    assert made["status"] is Status.FAILED
    assert "v1_a gave a wrong answer in a timed run" in made["message"]


def test_an_output_of_another_form_voids_the_benchmark() -> None:
    made = bench.all_sizes(session(provider(lambda x: right(x).unsqueeze(-1))))
    assert made["status"] is Status.FAILED
    assert "not of the shapes and dtypes" in made["message"]


class Tried(Timer):
    """Each call's tries come from a script: microseconds, and why it does not count."""

    def __init__(self, *script: list[tuple[float, str | None]]) -> None:
        self.script = list(script)
        self.given_up = 0

    def give_up(self) -> None:
        self.given_up += 1

    def tries(self, calls: Sequence[Call], todo: Sequence[int]) -> list[Try]:
        made = self.script.pop(0)
        assert len(made) == len(todo)
        return [Try(us, calls[i].act(), why) for (us, why), i in zip(made, todo, strict=True)]


def test_only_what_was_no_valid_sample_is_timed_again_and_the_reason_is_kept() -> None:
    timer = Tried([(5.0, None), (9.0, timers.SLOW), (6.0, None)], [(7.0, None)])
    made = timer.run([Call(lambda i=i: i) for i in range(3)])
    assert [(s.raw_us, s.value) for s in made] == [(5.0, 0), (7.0, 1), (6.0, 2)]
    assert timer.given_up == 0
    assert [s.discarded for s in made] == [(), (timers.SLOW,), ()]


def test_a_call_without_a_valid_sample_says_why_each_try_was_none() -> None:
    tries = [[(5.0, "compiled meanwhile")], *[[(9.0, timers.SLOW)]] * (timers.MAX_TRIES - 1)]
    with pytest.raises(Unstable, match=r"compiled meanwhile \(1 times\), .*gate \(3 times\)"):
        (timer := Tried(*tries)).run([Call(lambda: 0)])
    assert timer.given_up == 1


def test_the_gate_grows_at_once_where_it_was_too_short_and_forgets_a_hiccup() -> None:
    gate = Gate()
    for _ in range(200):
        gate.tell(80.0, closed=True)
    assert gate.us == pytest.approx(160.0, rel=0.01)
    gate.tell(10_000.0, closed=False)
    assert gate.us == pytest.approx(640.0, rel=0.01)
    for _ in range(30):
        gate.tell(80.0, closed=True)
    assert gate.us < 200.0
    for _ in range(200):
        gate.tell(1.0, closed=True)
    assert gate.us == timers.MIN_GATE_US
    gate.tell(50.0, closed=False)
    assert gate.us == 2 * timers.MIN_GATE_US
    assert gate.cycles == gate.us * timers.CYCLES_PER_US


def gauged(
    monkeypatch: pytest.MonkeyPatch, own_us: dict[str, float], raw_us: dict[str, float]
) -> timers.Gauged:
    """A timer gauged with kernels that take so long through it."""
    called: list[str] = []
    tiny = {name: partial(called.append, name) for name in raw_us}
    monkeypatch.setattr(timers, "tiny_kernels", lambda: tiny)
    return LateTimer(lambda: raw_us[called[-1]]).gauged(own_us)


def test_what_a_timer_adds_is_what_most_kernels_say(monkeypatch: pytest.MonkeyPatch) -> None:
    own = {"empty": 0.55, "many": 0.62, "spin": 1.1}
    made = gauged(monkeypatch, own, {"empty": 2.87, "many": 2.94, "spin": 9.0})
    assert made.floor_us == pytest.approx(2.87)
    assert made.added_us == pytest.approx(2.32)
    assert made.tick_us == pytest.approx(0.07)


def test_without_cupti_what_a_timer_adds_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    made = gauged(monkeypatch, {}, {"empty": 2.87})
    assert (made.floor_us, made.added_us) == (pytest.approx(2.87), None)
    watch = bench.Watch(LateTimer(lambda: 5.0), made.added_us, made.tick_us)
    assert watch.net_us([5.0]) == (5.0,)


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
    raced = replace(one, providers=(slow, *one.providers[1:3], again))
    made = bench.all_sizes(by(LateTimer(raw_us), raced))
    rounds = {t.provider: len(t.extra_us) for t in made["timings"]}
    assert rounds["torch"] == 0
    assert rounds["v1_a"] == rounds["v2_b"] > 0


# ------------------------------------------------------------------- other timers, the census


class Uncapturable(ScriptedTimer):
    """A graph's timer on which one provider's call can't be captured."""

    clock = "graph"

    def __init__(self, whose: Callable[..., object]) -> None:
        super().__init__(lambda: 10.0)
        self.whose = whose

    def run(self, calls: Sequence[Call]) -> list[Sample]:
        bound = dict(zip(calls[0].act.__code__.co_freevars, calls[0].act.__closure__, strict=True))
        if bound["act"].cell_contents is self.whose:
            raise NotCaptured("operation not permitted when stream is capturing")
        return super().run(calls)


def test_where_one_can_not_be_captured_everyone_is_timed_behind_the_gate_and_that_is_said() -> None:
    def synchronizes(x: torch.Tensor) -> torch.Tensor:
        return right(x)

    def gated() -> bench.Watch:
        return bench.Watch(ScriptedTimer(lambda: 100.0), added_us=2.5, tick_us=0.032)

    one = session(provider(right), provider(synchronizes, "v2_b"), sizes=("small",))
    graphs = replace(by(Uncapturable(synchronizes), one), fall_back=gated)
    made = bench.all_sizes(graphs)
    assert {(t.provider, t.clock) for t in made["timings"]} == {
        ("torch", "gpu"), ("v1_a", "gpu"), ("v2_b", "gpu"),
    }  # fmt: skip
    (said,) = made["conditions"]
    assert said.startswith("small: v2_b can't be captured in a CUDA graph (operation not permitted")
    assert said.endswith("everyone was timed there behind the gate instead")
    whole = bench.all_sizes(replace(by(Uncapturable(right), one), providers=one.providers[::2]))
    assert {t.clock for t in whole["timings"]} == {"graph"}
    assert whole["conditions"] == ()


def test_what_goes_wrong_behind_the_gate_is_not_blamed_on_the_graph() -> None:
    def slow(x: torch.Tensor) -> torch.Tensor:
        raise Unstable(f"while {sys.exception()} was handled")

    class Graphs(ScriptedTimer):
        def run(self, calls: Sequence[Call]) -> list[Sample]:
            try:
                raise RuntimeError("not permitted when stream is capturing")
            except RuntimeError as error:
                raise NotCaptured(str(error)) from error

    def gated() -> bench.Watch:
        return bench.Watch(ScriptedTimer(lambda: 100.0), added_us=2.5, tick_us=0.032)

    one = by(Graphs(lambda: 1.0), session(provider(right), provider(slow, "v2_b")))
    made = bench.all_sizes(replace(one, fall_back=gated))
    assert [(g.provider, g.reason) for g in made["not_timed"]] == [
        ("v2_b", "Unstable: while None was handled")
    ]


def test_a_final_is_not_made_of_times_by_two_clocks() -> None:
    timed = [timing("v1_a", (us,)) for us in (1.0, 2.0, 30.0)]
    sized = [t.model_copy(update={"size": s}) for t, s in zip(timed, SIZES, strict=True)]
    whole = Benchmark(
        op="softmax", status=Status.PASSED, versions=("v1_a",), sha256s=("0",), runs=1,
        providers=("v1_a",), sizes=SIZES, dtype="float32", clock="graph", seed=1, timings=sized,
    )  # fmt: skip
    assert whole.final_us("v1") == 11.0
    mixed = (sized[0].model_copy(update={"clock": "graph"}), *sized[1:])
    assert whole.model_copy(update={"timings": mixed}).final_us("v1") is None


def test_the_census_counts_kernels_by_stream_and_tells_tritons_share() -> None:
    def profile(act: Callable[[], object]) -> list[Ran]:
        act()
        return [Ran("sum_kernel", 7, 3.0), Ran("at::native::fill", 13, 1.0)] * CALLS

    op = ops.load("sum")
    loaded = load_version(version_of(KERNELS / "sum_right.py", "sum"))
    x = op.make_inputs((4, 8), torch.float32, CPU, torch.Generator())
    made = census("v1_a", "small", lambda: loaded.call(*x), profile=profile)
    assert [(k.name, k.stream, k.count, k.us, k.triton) for k in made.kernels] == [
        ("sum_kernel", 7, 1.0, 3.0, True), ("at::native::fill", 13, 1.0, 1.0, False),
    ]  # fmt: skip
    assert made.streams == (7, 13)
    assert made.triton_share == 0.75


def test_where_cupti_refuses_the_census_says_so_and_the_timings_stand() -> None:
    def refused(act: Callable[[], object]) -> list[Ran]:
        raise RuntimeError("CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED\nat line 7")

    one = session(provider(right))
    told = bench.censuses(one, profile=refused)
    assert [c.provider for c in told] == ["torch", "v1_a"]
    assert {c.note for c in told} == {
        "CUPTI refused: CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED"
    }
    assert {c.note for c in bench.censuses(one, profile=lambda act: [])} == {BLIND}
    assert bench.all_sizes(one)["status"] is Status.PASSED


def test_the_census_of_one_who_raises_is_missing_and_the_others_stands() -> None:
    def breaks(x: torch.Tensor) -> torch.Tensor:
        raise ValueError("too many columns for me")

    def profile(act: Callable[[], object]) -> list[Ran]:
        act()
        return [Ran("k", 7, 3.0)]

    one = session(provider(breaks), provider(right, "v2_b"))
    first, second, third = bench.censuses(one, profile=profile)
    assert "too many columns" in str(second.note)
    assert first.kernels
    assert third.kernels
