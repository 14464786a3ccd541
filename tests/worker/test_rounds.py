"""The rounds of a benchmark on a GPU, over scripted times: no GPU is needed."""

from __future__ import annotations

import itertools
import random
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch

from tests.worker.sessions import (
    LateTimer,
    ScriptedTimer,
    by,
    provider,
    right,
    session,
)
from triton_magics.model import Status
from triton_magics.worker import timers, verdicts
from triton_magics.worker.graph_timer import NotCaptured
from triton_magics.worker.providers import COMPILE, Provider
from triton_magics.worker.rounds import KEEPS, all_sizes
from triton_magics.worker.timers import Call, Sample, Unstable, Watch
from triton_magics.worker.torch_settings import TorchSettings


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
    rival = Provider("m:twice", lambda x: 2 * x.sum(-1))
    one = session(provider(right), rival, rivals=("m:twice",))
    made = all_sizes(one)
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
    made = all_sizes(one)
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
        lambda: torch.backends.cuda.enable_flash_sdp(False),
        lambda: torch.backends.cuda.enable_cudnn_sdp(False),
        lambda: torch.use_deterministic_algorithms(True),
        lambda: torch.use_deterministic_algorithms(True, warn_only=True),
    ],
)
def test_settings_are_put_back_whichever_way_they_were_changed(meddle: Callable[[], None]) -> None:
    settings = TorchSettings()
    assert settings.put_back() is False
    meddle()
    assert settings.put_back() is True
    assert settings.put_back() is False
    assert torch.backends.cuda.matmul.allow_tf32 is False  # also: torch refuses no product
    assert torch.backends.cuda.flash_sdp_enabled()
    assert torch.backends.cuda.cudnn_sdp_enabled()
    assert not torch.are_deterministic_algorithms_enabled()


def test_net_is_raw_without_what_the_timer_adds() -> None:
    made = all_sizes(session(provider(right)))
    assert made["status"] is Status.PASSED
    for timing in made["timings"]:
        assert (timing.raw_us[0], timing.samples_us[0], timing.calls) == (100.0, 97.5, 1)
        assert len(timing.samples_us) == 10


def test_torch_compile_knows_the_shape_at_every_size() -> None:
    seen = []

    def told(graph: torch.fx.GraphModule, inputs: list[object]) -> Callable[..., object]:
        seen.append([tuple(x.shape) if isinstance(x, torch.Tensor) else x for x in inputs])
        return graph.forward

    compiled = Provider(COMPILE, torch.compile(right, backend=told))
    made = all_sizes(session(compiled, sizes=("small", "medium"), against=(COMPILE,), runs=2))
    assert [t.provider for t in made["timings"]].count(COMPILE) == 2
    assert seen == [[(16, 16)], [(32, 32)]]  # of any size, an input would be a symbol


def test_a_short_call_is_made_several_times_a_run() -> None:
    for raw_us, calls in ((55.0, 1), (33.0, 3), (9.0, 12), (2.6, timers.MAX_CALLS)):
        made = all_sizes(session(provider(right), raw_us=lambda us=raw_us: us))
        assert {t.calls for t in made["timings"]} == {calls}


def test_a_version_that_fails_at_one_size_is_missing_there_and_the_rest_stands() -> None:
    def small_only(x: torch.Tensor) -> torch.Tensor:
        if x.numel() > 16 * 16:
            raise ValueError("too many columns for me")
        return right(x)

    made = all_sizes(session(provider(small_only), sizes=("small", "medium")))
    assert made["status"] is Status.PASSED
    told = {(t.provider, t.size) for t in made["timings"]}
    assert told == {("torch", "small"), ("v1_a", "small"), ("torch", "medium")}
    (gap,) = made["not_timed"]
    assert (gap.provider, gap.size) == ("v1_a", "medium")
    assert "too many columns for me" in gap.reason


def test_a_version_out_of_memory_at_one_size_is_missing_there() -> None:
    def hungry(x: torch.Tensor) -> torch.Tensor:
        raise torch.OutOfMemoryError("CUDA out of memory")

    made = all_sizes(session(provider(hungry)))
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
    made = all_sizes(small)
    assert [(g.size, g.provider) for g in made["not_timed"]] == [("medium", None)]
    assert {t.size for t in made["timings"]} == {"small"}


def test_a_shape_of_ones_own_that_does_not_fit_is_missing_and_the_sizes_stand() -> None:
    one = session(provider(right), sizes=("small", "300x300", "8192x151936"))
    make = one.op.make_inputs

    def fits(shape: tuple[int, ...], *rest: object) -> tuple[torch.Tensor, ...]:
        if torch.Size(shape).numel() > 2**24:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return make(shape, *rest)

    made = all_sizes(replace(one, op=replace(one.op, make_inputs=fits)))
    assert {(t.size, t.shape) for t in made["timings"]} == {
        ("small", (16, 16)), ("300x300", (300, 300)),
    }  # fmt: skip
    (gap,) = made["not_timed"]
    assert (gap.size, gap.provider) == ("8192x151936", None)
    assert gap.reason == "does not fit the GPU's free memory"


def test_after_a_cuda_error_what_was_timed_is_kept() -> None:
    def breaks(x: torch.Tensor) -> torch.Tensor:
        if x.numel() > 16 * 16:
            raise RuntimeError("CUDA error: an illegal memory access was encountered")
        return right(x)

    made = all_sizes(session(provider(breaks), sizes=("small", "medium")))
    assert made["status"] is Status.CRASHED
    assert "v1_a at medium" in made["message"]
    assert {(t.provider, t.size) for t in made["timings"]} == {
        ("torch", "small"), ("v1_a", "small"),
    }  # fmt: skip


def test_a_provider_without_a_valid_run_is_missing_and_says_why() -> None:
    def taken(_: torch.Tensor) -> torch.Tensor:
        raise Unstable("no valid run in 4 tries: the host was slower than the gate (4 times)")

    made = all_sizes(session(provider(taken)))
    assert "slower than the gate" in made["not_timed"][0].reason
    assert [t.provider for t in made["timings"]] == ["torch"]


def test_every_timed_output_is_checked() -> None:
    calls = 0

    def sometimes(x: torch.Tensor) -> torch.Tensor:
        nonlocal calls
        calls += 1
        return right(x) * (2.0 if calls == 57 else 1.0)

    made = all_sizes(session(provider(sometimes), raw_us=lambda: 5.5))
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

    made = all_sizes(by(Hasty(lambda: 100.0), session(provider(right))))
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

    made = all_sizes(by(Late(lambda: 100.0), session(provider(unfinished))))
    assert made["status"] is Status.FAILED
    assert "v1_a gave a wrong answer in a timed run" in made["message"]


@pytest.mark.parametrize(("times", "told"), [(1.95, False), (2.05, True)])
def test_an_answer_that_is_kept_for_the_other_calls_of_a_run_is_told(
    times: float, told: bool
) -> None:
    known: dict[str, Any] = {}

    def keeps(x: torch.Tensor) -> torch.Tensor:
        known["us"] = 12.5  # 10 us net
        if "x" not in known or not torch.equal(known["x"], x):
            known.update(x=x.clone(), answer=right(x), us=2.5 + times * 10)
        return known["answer"].clone()

    one = session(provider(keeps))
    made = all_sizes(by(LateTimer(lambda: known.pop("us", 20.0)), one))
    assert made["status"] is Status.PASSED
    assert {t.calls for t in made["timings"]} == {8}
    sizes = ("small",) if told else ()
    assert one.keepers == [KEEPS.format("v1_a", size, 2.05) for size in sizes]


def test_where_a_call_makes_a_run_or_the_host_is_timed_nobody_keeps_an_answer() -> None:
    first = itertools.cycle([90.0, 12.5, 12.5, 12.5, 12.5, 12.5, 12.5, 12.5])
    by_host = LateTimer(lambda: next(first))
    by_host.clock = "launch"
    for timer in (ScriptedTimer(lambda: 100.0), by_host):
        one = session(provider(right))
        all_sizes(by(timer, one))
        assert one.keepers == []


def test_an_output_of_another_form_voids_the_benchmark() -> None:
    made = all_sizes(session(provider(lambda x: right(x).unsqueeze(-1))))
    assert made["status"] is Status.FAILED
    assert "not of the shapes and dtypes" in made["message"]


def test_rounds_are_added_only_where_a_verdict_is_open() -> None:
    draw = random.Random(1)
    calm = all_sizes(session(provider(right), raw_us=lambda: 100 + draw.gauss(0, 0.1)))
    restless = all_sizes(session(provider(right), raw_us=lambda: 100 + draw.gauss(0, 4)))
    assert {len(t.extra_us) for t in calm["timings"]} == {0}
    assert {len(t.extra_us) for t in restless["timings"]} == {90}
    assert {len(t.samples_us) for t in restless["timings"]} == {10}


class Race:
    """Four who take turns, each with a time of its own in each of its runs, with some noise."""

    def __init__(self, us: dict[str, Callable[[int], float]], noise: float) -> None:
        self.us, self.noise = us, noise
        self.draw, self.called, self.done = random.Random(2), "", Counter[str]()

    def named(self, name: str) -> Provider:
        def call(x: torch.Tensor) -> torch.Tensor:
            self.called = name
            return right(x)

        return provider(call, name)

    def raw_us(self) -> float:
        self.done[self.called] += 1
        us = self.us[self.called](self.done[self.called])
        return us * (1 + self.draw.gauss(0, self.noise))

    def made(self) -> dict[str, Any]:
        versions = [self.named(name) for name in ("v1_a", "v2_b")]
        one = session(*versions)
        torchs = [Provider(n, self.named(n).call) for n in ("torch", verdicts.AGAIN)]
        raced = replace(one, providers=(torchs[0], *versions, torchs[1]))
        return all_sizes(by(LateTimer(self.raw_us), raced))


def test_extra_rounds_leave_out_who_is_decided() -> None:
    times = {"v1_a": 100.0, "v2_b": 100.0, "torch": 200.0, verdicts.AGAIN: 200.0}
    made = Race({name: lambda run, us=us: us for name, us in times.items()}, noise=0.03).made()
    rounds = {t.provider: len(t.extra_us) for t in made["timings"]}
    assert rounds["torch"] == 0
    assert rounds["v1_a"] == rounds["v2_b"] > 0


@pytest.mark.parametrize(("until", "found"), [(17, True), (1000, False)])
def test_a_control_that_was_restless_by_chance_is_timed_until_it_is_calm(
    until: int, found: bool
) -> None:
    again = {verdicts.AGAIN: lambda run: 208.0 if run <= until else 200.0}
    others = {"v1_a": lambda run: 100.0, "v2_b": lambda run: 103.5, "torch": lambda run: 200.0}
    made = Race(others | again, noise=0.004).made()
    rounds = {t.provider: len(t.extra_us) for t in made["timings"]}
    (pair,) = [c for c in made["comparisons"] if (c.candidate, c.baseline) == ("v2_b", "v1_a")]
    assert rounds["torch"] == rounds["v1_a"] == rounds["v2_b"] > 0
    assert (pair.verdict == "slower") is found
    assert (pair.threshold < 0.03) is found


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

    def gated() -> Watch:
        return Watch(ScriptedTimer(lambda: 100.0), added_us=2.5, tick_us=0.032)

    one = session(provider(right), provider(synchronizes, "v2_b"), sizes=("small",))
    graphs = replace(by(Uncapturable(synchronizes), one), fall_back=gated)
    made = all_sizes(graphs)
    assert {(t.provider, t.clock) for t in made["timings"]} == {
        ("torch", "gpu"), ("v1_a", "gpu"), ("v2_b", "gpu"),
    }  # fmt: skip
    (said,) = made["conditions"]
    assert said.startswith("small: v2_b can't be captured in a CUDA graph (operation not permitted")
    assert said.endswith("everyone was timed there behind the gate instead")
    whole = all_sizes(replace(by(Uncapturable(right), one), providers=one.providers[::2]))
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

    def gated() -> Watch:
        return Watch(ScriptedTimer(lambda: 100.0), added_us=2.5, tick_us=0.032)

    one = by(Graphs(lambda: 1.0), session(provider(right), provider(slow, "v2_b")))
    made = all_sizes(replace(one, fall_back=gated))
    assert [(g.provider, g.reason) for g in made["not_timed"]] == [
        ("v2_b", "Unstable: while None was handled")
    ]
