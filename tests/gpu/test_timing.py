"""The timers, the census and the self-test, on a GPU."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from triton_magics import ops
from triton_magics.engine import gpu
from triton_magics.lab import Lab
from triton_magics.model import Status
from triton_magics.worker.slots import PLACES, Slots, case_of
from triton_magics.worker.timers import GatedTimer

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(gpu.detect() != "gpu", reason="no NVIDIA GPU with a CUDA build of torch"),
]
SOFTMAX = (Path(__file__).parent.parent / "faults" / "kernels" / "softmax_right.py").read_text()
SYNCHRONIZES = SOFTMAX.replace(
    "    return out", "    torch.cuda.current_stream().synchronize()\n    return out"
)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with Lab(tmp_path_factory.mktemp("timing")) as made:
        made.write("softmax", "v1", SOFTMAX)
        made.validate("softmax", "v1", plan="quick", dtypes=["float32"])
        made.write("softmax", "v2", SYNCHRONIZES)
        made.validate("softmax", "v2", plan="quick", dtypes=["float32"])
        yield made


def test_a_graph_leaves_out_what_lies_between_calls(lab: Lab) -> None:
    gated = lab.bench("softmax", "v1", budget=0.0)
    graph = lab.bench("softmax", "v1", timer="graph", budget=0.0)
    launch = lab.bench("softmax", "v1", timer="launch", budget=0.0)
    assert [b.clock for b in (gated, graph, launch)] == ["gpu", "graph", "launch"]
    assert {t.clock for t in graph.timings} == {"graph"}
    for size in gated.sizes:
        by_gate, in_graph, by_host = (b.timing("v1", size) for b in (gated, graph, launch))
        assert in_graph.mean_us == pytest.approx(by_gate.mean_us, rel=0.25, abs=1.0)
        assert by_host.mean_us > by_gate.mean_us + 5


def test_where_one_can_not_be_captured_all_are_timed_behind_the_gate(lab: Lab) -> None:
    made = lab.bench("softmax", "v1", "v2", timer="graph", sizes=("small",), budget=0.0)
    assert made.status is Status.PASSED
    assert {t.clock for t in made.timings} == {"gpu"}
    assert any("v2_tiling can't be captured in a CUDA graph" in said for said in made.conditions)
    assert made.timing("v1", "small") is not None
    (gap,) = made.not_timed  # behind a gate it waits for the gate
    assert gap.provider == "v2_tiling"
    assert "slower than the gate" in gap.reason


def test_a_census_names_the_kernels_and_leaves_the_next_benchmark_without_a_profiler(
    lab: Lab,
) -> None:
    made = lab.bench("softmax", "v1", census=True, budget=0.0)
    torchs, own = made.census
    assert [k.name for k in own.kernels] == ["softmax_kernel"]
    assert (own.triton_share, len(own.streams)) == (1.0, 1)
    assert torchs.triton_share == 0.0
    assert lab.bench("softmax", "v1", budget=0.0).census == ()


def test_the_timing_tells_right_from_wrong_here(lab: Lab) -> None:
    made = lab.selftest()
    assert {c.what: c.said for c in made.checks if not c.passed} == {}
    assert len(made.checks) == 6
    assert made.passed


def test_small_outputs_go_through_many_places() -> None:
    op = ops.load("softmax")
    case = case_of(op, "small", "float32", 1)
    slots = Slots(op, case, torch.device("cuda", 0), n=2, small=8)
    seen = set()
    for call in slots.calls(op.reference, 3 * PLACES):
        call.before()
        call.fresh()
        seen.add(call.act().data_ptr())
    assert len(seen) >= PLACES


@pytest.mark.parametrize("waits_us", [0, 20, 50, 100, 200, 500])
@pytest.mark.parametrize("cold", [True, False])
def test_what_is_launched_beside_the_stream_runs_before_the_contents_are_there(
    cold: bool, waits_us: int
) -> None:
    op, l2_bytes = ops.load("softmax"), torch.cuda.get_device_properties(0).L2_cache_size
    slots = Slots(op, case_of(op, "small", "float32", 1), torch.device("cuda", 0), n=2, small=8)
    timer, stream = GatedTimer(l2_bytes, cold=cold), torch.cuda.Stream()

    def aside(x: torch.Tensor) -> torch.Tensor:
        begun = time.perf_counter()
        while 1e6 * (time.perf_counter() - begun) < waits_us:
            pass
        with torch.cuda.stream(stream):
            return op.reference(x)

    made = [one for _ in range(3) for one in timer.tries(slots.calls(aside, 12), range(12))]
    valid = [one.value for one in made if one.reason is None]
    assert len(valid) > 12
    found = sum(slots.wrong([value]) is None for value in valid)
    assert found <= len(valid) // 12  # one that is launched as the gate opens may be in time


def test_what_is_done_on_a_stream_that_the_call_leaves_behind_is_missing_from_its_output() -> None:
    op, l2_bytes = ops.load("softmax"), torch.cuda.get_device_properties(0).L2_cache_size
    slots = Slots(op, case_of(op, "small", "float32", 1), torch.device("cuda", 0), n=2, small=8)
    own = torch.cuda.current_stream()
    timer, stream = GatedTimer(l2_bytes, cold=True), torch.cuda.Stream()

    def leaves_another(x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        stream.wait_stream(torch.cuda.current_stream())
        torch.cuda.set_stream(stream)
        torch.cuda._sleep(1_000_000)
        return out.copy_(op.reference(x))

    for seed in range(3):
        slots.refill(seed)
        made = timer.tries(slots.calls(leaves_another, 12), range(12))
        assert torch.cuda.current_stream() == own
        assert sum(slots.wrong([one.value]) is None for one in made) == 0
