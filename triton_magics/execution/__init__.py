"""Runs jobs, on this machine or elsewhere, so that no kernel can hurt the caller."""

from triton_magics.execution.base import Device, Executor, JobEvent, JobHandle, Limits
from triton_magics.execution.local.executor import LocalExecutor
from triton_magics.execution.outcome import Outcome
from triton_magics.execution.waiting import wait_for

__all__ = [
    "Device",
    "Executor",
    "JobEvent",
    "JobHandle",
    "Limits",
    "LocalExecutor",
    "Outcome",
    "wait_for",
]
