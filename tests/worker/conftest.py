"""What is interpreted in the tests' own process is interpreted as in a worker: quickly."""

from __future__ import annotations

import pytest
import torch

from triton_magics.worker.quicken import quicken


@pytest.fixture(scope="session", autouse=True)
def as_in_a_worker() -> None:
    """As `worker.resources.begin` does it; on small tensors threads would wait for each other."""
    quicken()
    torch.set_num_threads(1)
