"""Spend half a second of CPU time before it is ready, then run jobs as `obeys.py` does."""

import time

while time.process_time() < 0.5:
    pass
import obeys  # noqa: E402, F401 (it runs as it is imported)
