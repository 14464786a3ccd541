"""The rounds of a GPU benchmark with scripted times; no GPU is needed."""

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

from tests.harness.sessions import (
    LateTimer,
    ScriptedTimer,
    provider,
    right,
    session,
    with_timer,
)
from triton_magics.harness.timers import gated_timer
from triton_magics.harness.timers.gated_timer import (
    CalibratedTimer,
    Sample,
    TimedCall,
    UnstableTiming,
)
from triton_magics.harness.timers.graph_timer import NotCaptured
from triton_magics.harness.timing import speed_verdicts
from triton_magics.harness.timing.baselines import TORCH_COMPILE, Provider
from triton_magics.harness.timing.rounds import time_all_sizes
from triton_magics.harness.timing.timed_contents import OTHER_INPUTS
from triton_magics.harness.timing.torch_settings import TorchSettings
from triton_magics.model import NotTimedCode, Status


def test_every_version_is_compared_with_each_baseline() -> None:
    times = {"torch": 10.0, "v1_a": 8.0, "v2_b": 5.0, "v3_c": 4.0, "m:f": 6.0}
    net = {name: [us] * 10 for name, us in times.items()}
    result, _ = speed_verdicts.compare_times(net, None, "small", ("m:f", "v1_a"))
    against_torch = {(n, "torch") for n in times if n != "torch"}
    baselines = {
        ("v1_a", "m:f"),
        ("v2_b", "m:f"),
        ("v3_c", "m:f"),
        ("v2_b", "v1_a"),
        ("v3_c", "v1_a"),
    }
    assert {(c.candidate, c.baseline) for c in result} == against_torch | baselines | {
        ("v3_c", "v2_b")
    }
    verdicts = {(c.candidate, c.baseline): c.verdict for c in result}
    assert (verdicts["v1_a", "m:f"], verdicts["v2_b", "m:f"]) == ("slower", "faster")


def test_wrong_baseline_is_not_timed() -> None:
    baseline = Provider("m:twice", lambda x: 2 * x.sum(-1))
    one = session(provider(right), baseline, baselines=("m:twice",))
    result = time_all_sizes(one)
    assert result["status"] is Status.PASSED
    assert [t.provider for t in result["timings"]] == ["torch", "v1_a"]
    (missing,) = result["not_timed"]
    assert missing.provider == "m:twice"
    assert missing.reason.startswith("it does not compute sum: ")


def test_changed_torch_settings_are_reported_and_restored() -> None:
    observed = set()

    def changes_precision(x: torch.Tensor) -> torch.Tensor:
        observed.add(torch.backends.cuda.matmul.fp32_precision)
        torch.set_float32_matmul_precision("medium")
        return right(x)

    before = torch.get_float32_matmul_precision()
    one = session(provider(changes_precision), raw_us=lambda: 100.0)
    result = time_all_sizes(one)
    assert result["status"] is Status.PASSED
    assert one.changed_settings == {"v1_a"}
    assert torch.get_float32_matmul_precision() == before
    assert torch.backends.cuda.matmul.allow_tf32 is False


@pytest.mark.parametrize(
    "change",
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
def test_settings_are_restored_after_every_kind_of_change(change: Callable[[], None]) -> None:
    settings = TorchSettings()
    assert settings.restore() is False
    change()
    assert settings.restore() is True
    assert settings.restore() is False
    assert torch.backends.cuda.matmul.allow_tf32 is False  # also: torch refuses no product
    assert torch.backends.cuda.flash_sdp_enabled()
    assert torch.backends.cuda.cudnn_sdp_enabled()
    assert not torch.are_deterministic_algorithms_enabled()


def test_net_time_is_raw_time_minus_overhead() -> None:
    result = time_all_sizes(session(provider(right)))
    assert result["status"] is Status.PASSED
    for timing in result["timings"]:
        assert (timing.raw_us[0], timing.samples_us[0], timing.calls) == (100.0, 97.5, 1)
        assert len(timing.samples_us) == 10


def test_torch_compile_has_static_shapes_at_every_size() -> None:
    observed = []

    def backend(graph: torch.fx.GraphModule, inputs: list[object]) -> Callable[..., object]:
        observed.append([tuple(x.shape) if isinstance(x, torch.Tensor) else x for x in inputs])
        return graph.forward

    compiled = Provider(TORCH_COMPILE, torch.compile(right, backend=backend))
    result = time_all_sizes(
        session(compiled, sizes=("small", "medium"), against=(TORCH_COMPILE,), runs=2)
    )
    assert [t.provider for t in result["timings"]].count(TORCH_COMPILE) == 2
    assert observed == [[(16, 16)], [(32, 32)]]  # of any size, an input would be a symbol


def test_short_call_is_repeated_in_a_run() -> None:
    for raw_us, calls in ((55.0, 1), (33.0, 3), (9.0, 12), (2.6, gated_timer.MAX_CALLS)):
        result = time_all_sizes(session(provider(right), raw_us=lambda us=raw_us: us))
        assert {t.calls for t in result["timings"]} == {calls}


def test_failure_at_one_size_leaves_the_other_sizes() -> None:
    def small_only(x: torch.Tensor) -> torch.Tensor:
        if x.numel() > 16 * 16:
            raise ValueError("too many columns for me")
        return right(x)

    result = time_all_sizes(session(provider(small_only), sizes=("small", "medium")))
    assert result["status"] is Status.PASSED
    timed = {(t.provider, t.size) for t in result["timings"]}
    assert timed == {("torch", "small"), ("v1_a", "small"), ("torch", "medium")}
    (missing,) = result["not_timed"]
    assert (missing.provider, missing.size) == ("v1_a", "medium")
    assert "too many columns for me" in missing.reason


def test_out_of_memory_at_one_size_is_not_timed() -> None:
    def hungry(x: torch.Tensor) -> torch.Tensor:
        raise torch.OutOfMemoryError("CUDA out of memory")

    result = time_all_sizes(session(provider(hungry)))
    assert [(g.provider, g.reason) for g in result["not_timed"]] == [("v1_a", "out of GPU memory")]
    assert [t.provider for t in result["timings"]] == ["torch"]


def test_size_beyond_memory_is_not_timed_for_any_provider() -> None:
    one = session(provider(right), sizes=("small", "medium"))
    reference = one.op.reference

    def fits(x: torch.Tensor) -> torch.Tensor:
        if x.numel() > 16 * 16:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return reference(x)

    small = replace(one, op=replace(one.op, reference=fits))
    result = time_all_sizes(small)
    assert [(g.size, g.provider) for g in result["not_timed"]] == [("medium", None)]
    assert {t.size for t in result["timings"]} == {"small"}


def test_custom_shape_beyond_memory_leaves_the_sizes() -> None:
    one = session(provider(right), sizes=("small", "300x300", "8192x151936"))
    make = one.op.make_inputs

    def fits(shape: tuple[int, ...], *rest: object) -> tuple[torch.Tensor, ...]:
        if torch.Size(shape).numel() > 2**24:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return make(shape, *rest)

    result = time_all_sizes(replace(one, op=replace(one.op, make_inputs=fits)))
    assert {(t.size, t.shape) for t in result["timings"]} == {
        ("small", (16, 16)), ("300x300", (300, 300)),
    }  # fmt: skip
    (missing,) = result["not_timed"]
    assert (missing.size, missing.provider) == ("8192x151936", None)
    assert missing.reason == "does not fit the GPU's free memory"


def test_earlier_timings_survive_a_cuda_error() -> None:
    def breaks(x: torch.Tensor) -> torch.Tensor:
        if x.numel() > 16 * 16:
            raise RuntimeError("CUDA error: an illegal memory access was encountered")
        return right(x)

    result = time_all_sizes(session(provider(breaks), sizes=("small", "medium")))
    assert result["status"] is Status.CRASHED
    assert "v1_a at medium" in result["message"]
    (gap,) = result["not_timed"]
    assert (gap.provider, gap.size) == ("v1_a", "medium")
    assert {(t.provider, t.size) for t in result["timings"]} == {
        ("torch", "small"), ("v1_a", "small"),
    }  # fmt: skip


def test_provider_without_a_valid_run_has_a_reason() -> None:
    def unstable(_: torch.Tensor) -> torch.Tensor:
        raise UnstableTiming(["the host was slower than the gate"] * 4)

    result = time_all_sizes(session(provider(unstable)))
    assert "slower than the gate" in result["not_timed"][0].reason
    assert [t.provider for t in result["timings"]] == ["torch"]


def test_every_timed_output_is_checked() -> None:
    calls = 0

    def sometimes(x: torch.Tensor) -> torch.Tensor:
        nonlocal calls
        calls += 1
        return right(x) * (2.0 if calls == 57 else 1.0)

    result = time_all_sizes(session(provider(sometimes), raw_us=lambda: 5.5))
    assert result["status"] is Status.FAILED
    assert "v1_a gave a wrong answer in a timed run" in result["message"]


def test_a_wrong_answer_takes_the_times_of_all_sizes() -> None:
    def wrong_where_large(x: torch.Tensor) -> torch.Tensor:
        return right(x) * (2.0 if x.numel() > 16 * 16 else 1.0)

    one = session(provider(wrong_where_large), sizes=("small", "medium"))
    result = time_all_sizes(one)
    assert result["status"] is Status.FAILED
    assert {(t.provider, t.size) for t in result["timings"]} == {("torch", "small")}


def test_work_that_does_not_wait_for_the_stream_is_wrong() -> None:
    class Hasty(ScriptedTimer):
        """A timer that calls while the gate is closed, as a separate stream does."""

        def one(self, call: TimedCall) -> Sample:
            call.before_gate()
            value = call.function()
            call.fill_inputs()
            return Sample(100.0, call.copy_output(value), ())

    result = time_all_sizes(with_timer(Hasty(lambda: 100.0), session(provider(right))))
    assert result["status"] is Status.FAILED
    assert "v1_a gave a wrong answer in a timed run" in result["message"]


def test_work_that_ends_after_the_call_is_wrong() -> None:
    late: list[tuple[torch.Tensor, torch.Tensor]] = []

    def returns_early(x: torch.Tensor) -> torch.Tensor:
        out = torch.full((x.shape[0],), float("nan"))
        late.append((out, right(x)))
        return out

    class Late(ScriptedTimer):
        def run(self, calls: Sequence[TimedCall]) -> list[Sample]:
            samples = super().run(calls)
            for out, value in late:
                out.copy_(value)
            return samples

    result = time_all_sizes(with_timer(Late(lambda: 100.0), session(provider(returns_early))))
    assert result["status"] is Status.FAILED
    assert "v1_a gave a wrong answer in a timed run" in result["message"]


class Caches:
    """A version that caches answers, and the time of its calls: quick where an answer is cached.

    Attributes:
        key: what it knows inputs by.
        new_us: net time of a call without a cached answer; else 10 us.
    """

    def __init__(self, key: Callable[[torch.Tensor], object], new_us: float = 200.0) -> None:
        self.key, self.new_us, self.us = key, new_us, 10.0
        self.answers: dict[object, torch.Tensor] = {}

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        key = self.key(x)
        self.us = 10.0 if key in self.answers else self.new_us
        return self.answers.setdefault(key, right(x)).clone()

    def result(self) -> dict[str, Any]:
        one = session(provider(self))
        return time_all_sizes(with_timer(LateTimer(lambda: self.us + 2.5), one))


@pytest.mark.parametrize(
    "key",
    [
        lambda x: 0,
        lambda x: x.data_ptr(),
        id,
        lambda x: (float(x[0, 0]), float(x[-1, -1]), float(x[3, 5])),
        lambda x: x[7].numpy().tobytes(),
    ],
    ids=["first call", "address", "object", "some elements", "a row"],
)
def test_a_cached_answer_voids_the_benchmark(key: Callable[[torch.Tensor], object]) -> None:
    result = Caches(key).result()
    assert result["status"] is Status.FAILED
    (culprit,) = result["not_timed"]
    assert (culprit.provider, culprit.size) == ("v1_a", "small")
    assert culprit.code in (NotTimedCode.CACHED, NotTimedCode.WRONG_OUTPUT)


def test_a_cached_answer_of_the_same_run_is_called_so() -> None:
    (culprit,) = Caches(lambda x: round(float(x[0, :4].sum()), 4)).result()["not_timed"]
    assert culprit.code is NotTimedCode.CACHED
    reason = f"v1_a caches answers: at small {OTHER_INPUTS}"
    assert culprit.reason == reason


@pytest.mark.parametrize(("new_us", "is_void"), [(14.9, False), (15.1, True)])
def test_a_version_that_is_slower_on_new_inputs_caches_answers(
    new_us: float, is_void: bool
) -> None:
    result = Caches(lambda x: x.numpy().tobytes(), new_us).result()
    assert (result["status"] is Status.FAILED) is is_void
    if is_void:
        (culprit,) = result["not_timed"]
        assert culprit.code is NotTimedCode.CACHED
        assert "calls on new inputs take 1.5x as long" in culprit.reason


def test_new_inputs_are_not_compared_with_one_call_or_host_time() -> None:
    first = itertools.cycle([90.0, 12.5, 12.5, 12.5, 12.5, 12.5, 12.5, 12.5])
    by_host = LateTimer(lambda: next(first))
    by_host.clock = "launch"
    for timer in (ScriptedTimer(lambda: 100.0), by_host):
        result = time_all_sizes(with_timer(timer, session(provider(right))))
        assert result["status"] is Status.PASSED


def test_output_of_another_shape_voids_the_benchmark() -> None:
    result = time_all_sizes(session(provider(lambda x: right(x).unsqueeze(-1))))
    assert result["status"] is Status.FAILED
    assert "shapes and dtypes are not those" in result["message"]


def test_rounds_are_added_only_for_undecided_verdicts() -> None:
    draw = random.Random(1)
    quiet = time_all_sizes(session(provider(right), raw_us=lambda: 100 + draw.gauss(0, 0.1)))
    noisy = time_all_sizes(session(provider(right), raw_us=lambda: 100 + draw.gauss(0, 4)))
    assert {len(t.extra_us) for t in quiet["timings"]} == {0}
    assert {len(t.extra_us) for t in noisy["timings"]} == {90}
    assert {len(t.samples_us) for t in noisy["timings"]} == {10}


class Race:
    """Four providers with scripted times for each run, with noise."""

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

    def result(self) -> dict[str, Any]:
        versions = [self.named(name) for name in ("v1_a", "v2_b")]
        one = session(*versions)
        torchs = [Provider(n, self.named(n).call) for n in ("torch", speed_verdicts.CONTROL)]
        raced = replace(one, providers=(torchs[0], *versions, torchs[1]))
        return time_all_sizes(with_timer(LateTimer(self.raw_us), raced))


def test_extra_rounds_skip_decided_providers() -> None:
    times = {"v1_a": 100.0, "v2_b": 100.0, "torch": 200.0, speed_verdicts.CONTROL: 200.0}
    result = Race({name: lambda run, us=us: us for name, us in times.items()}, noise=0.03).result()
    rounds = {t.provider: len(t.extra_us) for t in result["timings"]}
    assert rounds["torch"] == 0
    assert rounds["v1_a"] == rounds["v2_b"] > 0


@pytest.mark.parametrize(("noisy_runs", "is_decided"), [(17, True), (1000, False)])
def test_noisy_control_gets_extra_rounds(noisy_runs: int, is_decided: bool) -> None:
    again = {speed_verdicts.CONTROL: lambda run: 208.0 if run <= noisy_runs else 200.0}
    others = {"v1_a": lambda run: 100.0, "v2_b": lambda run: 103.5, "torch": lambda run: 200.0}
    result = Race(others | again, noise=0.004).result()
    rounds = {t.provider: len(t.extra_us) for t in result["timings"]}
    (pair,) = [c for c in result["comparisons"] if (c.candidate, c.baseline) == ("v2_b", "v1_a")]
    assert rounds["torch"] == rounds["v1_a"] == rounds["v2_b"] > 0
    assert (pair.verdict == "slower") is is_decided
    assert (pair.threshold < 0.03) is is_decided


class Uncapturable(ScriptedTimer):
    """A graph timer that can't capture one provider's call."""

    clock = "graph"

    def __init__(self, uncapturable: Callable[..., object]) -> None:
        super().__init__(lambda: 10.0)
        self.uncapturable = uncapturable

    def run(self, calls: Sequence[TimedCall]) -> list[Sample]:
        bound = dict(
            zip(calls[0].function.__code__.co_freevars, calls[0].function.__closure__, strict=True)
        )
        if bound["function"].cell_contents is self.uncapturable:
            raise NotCaptured("operation not permitted when stream is capturing")
        return super().run(calls)


def test_failed_capture_falls_back_to_the_gated_timer() -> None:
    def synchronizes(x: torch.Tensor) -> torch.Tensor:
        return right(x)

    def gated() -> CalibratedTimer:
        return CalibratedTimer(ScriptedTimer(lambda: 100.0), added_us=2.5, tick_us=0.032)

    one = session(provider(right), provider(synchronizes, "v2_b"), sizes=("small",))
    graphs = replace(with_timer(Uncapturable(synchronizes), one), make_fallback_timer=gated)
    result = time_all_sizes(graphs)
    assert {(t.provider, t.clock) for t in result["timings"]} == {
        ("torch", "gpu"), ("v1_a", "gpu"), ("v2_b", "gpu"),
    }  # fmt: skip
    (note,) = result["conditions"]
    assert note.startswith("small: v2_b can't be captured in a CUDA graph (operation not permitted")
    assert note.endswith("all providers were timed with the gated timer instead")
    whole = time_all_sizes(
        replace(with_timer(Uncapturable(right), one), providers=one.providers[::2])
    )
    assert {t.clock for t in whole["timings"]} == {"graph"}
    assert whole["conditions"] == ()


def test_error_after_the_fallback_has_no_cause() -> None:
    def slow(x: torch.Tensor) -> torch.Tensor:
        raise UnstableTiming([f"while {sys.exception()} was handled"])

    class Graphs(ScriptedTimer):
        def run(self, calls: Sequence[TimedCall]) -> list[Sample]:
            try:
                raise RuntimeError("not permitted when stream is capturing")
            except RuntimeError as error:
                raise NotCaptured(str(error)) from error

    def gated() -> CalibratedTimer:
        return CalibratedTimer(ScriptedTimer(lambda: 100.0), added_us=2.5, tick_us=0.032)

    one = with_timer(Graphs(lambda: 1.0), session(provider(right), provider(slow, "v2_b")))
    result = time_all_sizes(replace(one, make_fallback_timer=gated))
    assert [(g.provider, g.reason) for g in result["not_timed"]] == [
        ("v2_b", "UnstableTiming: no valid run in 1 tries: while None was handled (1 times)")
    ]
