"""Interpret kernels as in a worker, in these tests too."""

from tests.harness.conftest import as_in_a_worker

__all__ = ["as_in_a_worker"]
