"""Work that a call leaves behind its return: on a thread, or on another stream."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

import torch

from triton_magics.harness.correctness.case_inputs import is_bitwise_equal
from triton_magics.harness.correctness.guard_bands import is_small_on_gpu, to_compare
from triton_magics.harness.correctness.masked_memory import is_progress_monitor
from triton_magics.harness.process.device import CPU, GPU

LEFT_STREAM = (
    "the call left torch on another stream: put the work into `with torch.cuda.stream(stream):`, "
    "and let the stream that was current wait for it"
)


@dataclass(frozen=True)
class ProcessState:
    """The threads before a call, and torch's current stream; None without a GPU."""

    threads: frozenset[threading.Thread]
    stream: Any

    @classmethod
    def record(cls, device: torch.device) -> ProcessState:
        """Record the current state."""
        stream = torch.cuda.current_stream() if device.type == GPU.type else None
        return cls(frozenset(threading.enumerate()), stream)

    def restore_stream(self) -> bool:
        """Restore torch's current stream; return whether the call had changed it."""
        if self.stream is None or torch.cuda.current_stream() == self.stream:
            return False
        torch.cuda.set_stream(self.stream)
        return True


def find_late_work(outputs: tuple[Any, ...], before: ProcessState) -> str | None:
    """Return a message on a thread, stream or output that changed after the return."""
    changed = before.stream is not None and _changed_late(outputs)
    new_threads = [t for t in threading.enumerate() if t not in before.threads]
    if names := [t.name for t in new_threads if not is_progress_monitor(t)]:
        return f"the call left a thread running: {names[0]}"
    if before.restore_stream():
        return LEFT_STREAM
    if changed:
        return "the output still changed after its stream was done: work was left on another stream"
    return None


def _changed_late(outputs: tuple[Any, ...]) -> bool:
    """Return whether an output changes after its stream is done, until all streams are."""
    tensors = [t for t in outputs if type(t) is torch.Tensor]
    snapshots = [_snapshot(t) for t in tensors]
    torch.cuda.synchronize()
    pairs = zip(tensors, snapshots, strict=True)
    return not all(is_bitwise_equal(to_compare(t), s) for t, s in pairs)


def _snapshot(x: torch.Tensor) -> torch.Tensor:
    """Return a copy of what a tensor is when its stream is done; of a small one on the CPU.

    Nothing waits for the copy here: each wait is a turn on the GPU that other processes share.
    """
    if not is_small_on_gpu(x):
        return x.clone()
    memory = torch.empty(x.shape, dtype=x.dtype, device=CPU, pin_memory=True)
    return memory.copy_(x, non_blocking=True)
