"""Runs jobs in processes of their own, so that nothing a kernel does can hurt the notebook."""

from triton_magics.engine.outcome import Outcome
from triton_magics.engine.pool import Engine

__all__ = ["Engine", "Outcome"]
