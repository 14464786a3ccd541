"""Time calls replayed from a CUDA graph: GPU time without host or launch time."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from typing import Any

import torch

from triton_magics.harness.timers.gated_timer import (
    FLUSH_L2_SIZES,
    GatedTimer,
    TimedAttempt,
    TimedCall,
)
from triton_magics.model import Clock

MIN_CALLS = 10
MAX_CALLS = 256


class NotCaptured(Exception):
    """A call that can't be captured in a CUDA graph; the message is CUDA's."""


class GraphTimer(GatedTimer):
    """Time CUDA graphs of calls; a sample is the graph's time divided by its number of calls.

    With cold caches the calls cycle through inputs of twice the L2's size in total. Work on other
    streams must have joined the graph's stream, or it can't be captured.
    """

    clock: Clock = "graph"

    def __init__(self, l2_bytes: int, *, cold: bool) -> None:
        super().__init__(l2_bytes, cold=cold)
        self.spread_bytes = FLUSH_L2_SIZES * l2_bytes if cold else 0
        self._pool: Any = torch.cuda.graph_pool_handle()
        self._graph: torch.cuda.CUDAGraph | None = None

    def calls_per_run(self, raw_us: float, sets: int) -> int:
        """Return the number of sets of inputs, within limits."""
        return min(max(sets, MIN_CALLS), MAX_CALLS)

    def time_once(self, calls: Sequence[TimedCall], todo: Sequence[int]) -> list[TimedAttempt]:
        """Time all calls in one graph.

        Raises:
            NotCaptured: a call can't be captured.
        """
        chosen = [calls[i] for i in todo]
        graph, values = self._capture_all(chosen)

        def before_gate() -> None:
            for call, value in zip(chosen, values, strict=True):
                call.fill_inputs()
                _poison(value)

        (whole,) = super().time_once([TimedCall(graph.replay, before_gate=before_gate)], [0])
        each_us = whole.raw_us / len(chosen)
        return [
            TimedAttempt(each_us, call.copy_output(value), whole.reason)
            for call, value in zip(chosen, values, strict=True)
        ]

    def _capture_all(self, calls: Sequence[TimedCall]) -> tuple[torch.cuda.CUDAGraph, list[Any]]:
        graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        try:
            with torch.cuda.stream(stream):
                values = _capture(graph, calls, self._pool)
        except torch.OutOfMemoryError:
            raise
        except RuntimeError as error:
            torch.cuda.synchronize()
            self._pool = torch.cuda.graph_pool_handle()  # torch still captures into the old one
            raise NotCaptured(str(error).strip().splitlines()[0][:200]) from error
        torch.cuda.current_stream().wait_stream(stream)
        self._graph = graph  # the pool lives as long as a graph with memory in it
        return graph, values


def _capture(graph: torch.cuda.CUDAGraph, calls: Sequence[TimedCall], pool: Any) -> list[Any]:
    """Capture the calls; `torch.cuda.graph` would collect garbage and free all cached memory."""
    graph.capture_begin(pool=pool, capture_error_mode="thread_local")
    try:
        values = [call.function() for call in calls]
    except BaseException:
        with contextlib.suppress(RuntimeError):  # the first error is raised below
            graph.capture_end()
        raise
    graph.capture_end()
    return values


def _poison(value: Any) -> None:
    for output in value if isinstance(value, tuple | list) else (value,):
        if isinstance(output, torch.Tensor):
            output.fill_(math.nan if output.dtype.is_floating_point else -1)
