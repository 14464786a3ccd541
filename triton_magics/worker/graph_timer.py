"""Calls replayed from a CUDA graph: GPU time with no host and no launch between them."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from typing import Any

import torch

from triton_magics.model import Clock
from triton_magics.worker.timers import FLUSH_L2S, Call, GatedTimer, Try

MIN_CALLS = 10
MAX_CALLS = 256


class NotCaptured(Exception):
    """A call that a CUDA graph can't hold; the message says what CUDA says."""


class GraphTimer(GatedTimer):
    """Times whole CUDA graphs of calls; a sample is the graph's time over its calls.

    With cold caches the calls go round inputs that together are twice as large as the L2. All that
    is queued on other streams must have joined the graph's, or it can't be captured.
    """

    clock: Clock = "graph"

    def __init__(self, l2_bytes: int, *, cold: bool) -> None:
        super().__init__(l2_bytes, cold=cold)
        self.spread_bytes = FLUSH_L2S * l2_bytes if cold else 0
        self._pool: Any = torch.cuda.graph_pool_handle()
        self._graph: torch.cuda.CUDAGraph | None = None

    def calls_a_run(self, raw_us: float, sets: int) -> int:
        """As many as there are sets of inputs."""
        return min(max(sets, MIN_CALLS), MAX_CALLS)

    def tries(self, calls: Sequence[Call], todo: Sequence[int]) -> list[Try]:
        """All of them in one graph.

        Raises:
            NotCaptured: one of them can't be captured.
        """
        chosen = [calls[i] for i in todo]
        graph, values = self._captured(chosen)

        def before() -> None:
            for call, value in zip(chosen, values, strict=True):
                call.fresh()
                _poison(value)

        (whole,) = super().tries([Call(graph.replay, before=before)], [0])
        each_us = whole.raw_us / len(chosen)
        return [
            Try(each_us, call.kept(value), whole.reason)
            for call, value in zip(chosen, values, strict=True)
        ]

    def _captured(self, calls: Sequence[Call]) -> tuple[torch.cuda.CUDAGraph, list[Any]]:
        graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        try:
            with torch.cuda.stream(stream):
                values = _capture(graph, calls, self._pool)
        except torch.OutOfMemoryError:
            raise
        except RuntimeError as error:
            torch.cuda.synchronize()
            self._pool = torch.cuda.graph_pool_handle()  # torch still records into the old one
            raise NotCaptured(str(error).strip().splitlines()[0][:200]) from error
        torch.cuda.current_stream().wait_stream(stream)
        self._graph = graph  # the pool lives as long as a graph that has memory in it
        return graph, values


def _capture(graph: torch.cuda.CUDAGraph, calls: Sequence[Call], pool: Any) -> list[Any]:
    """Not `torch.cuda.graph`, which collects garbage and gives all cached memory back each time."""
    graph.capture_begin(pool=pool, capture_error_mode="thread_local")
    try:
        values = [call.act() for call in calls]
    except BaseException:
        with contextlib.suppress(RuntimeError):  # the capture is lost; why is being raised
            graph.capture_end()
        raise
    graph.capture_end()
    return values


def _poison(value: Any) -> None:
    for output in value if isinstance(value, tuple | list) else (value,):
        if isinstance(output, torch.Tensor):
            output.fill_(math.nan if output.dtype.is_floating_point else -1)
