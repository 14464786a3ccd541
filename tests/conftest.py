"""Triton decides between GPU and interpreter when it is imported: here, for the interpreter.

Workers are given their own value by the engine; what needs a GPU in a process, starts one.
"""

from __future__ import annotations

import os
import signal

from hypothesis import HealthCheck, settings

os.environ["TRITON_INTERPRET"] = "1"
os.environ["COLUMNS"] = "100"  # of results, whatever the terminal of the tests
# The same examples in each run, however slow the machine is; `make fuzz` looks for new ones.
settings.register_profile(
    "suite", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("suite")
# A suite that a script starts in the background inherits an ignored SIGINT; interrupts are tested.
signal.signal(signal.SIGINT, signal.default_int_handler)
