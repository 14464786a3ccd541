"""The worker's own code, run in this process by Triton's interpreter."""

from __future__ import annotations

import os

# Triton decides when it is imported; the engine's children are given their own value.
os.environ["TRITON_INTERPRET"] = "1"
