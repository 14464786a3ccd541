"""Interpret kernels in the tests' own process as quickly as in a worker."""

from __future__ import annotations

import pytest
import torch

from triton_magics.harness.correctness import half_reach, matched_fault, reach_probe
from triton_magics.harness.process.device import kernel_runtime


@pytest.fixture(scope="session", autouse=True)
def as_in_a_worker() -> None:
    """Use one thread, as `device.create_context` does: threads would spin on small tensors."""
    kernel_runtime()
    torch.set_num_threads(1)


@pytest.fixture(scope="session", autouse=True)
def with_time_to_explain() -> None:
    """Let a search for a cause end by itself: a slow machine would name other causes, or none."""
    for module in (half_reach, matched_fault, reach_probe):
        module.LIMIT_S = 60.0
