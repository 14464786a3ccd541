"""Triton decides between GPU and interpreter when it is imported: here, for the interpreter.

Workers are given their own value by the engine; what needs a GPU in a process, starts one.

Tests in turn: a tenth of those marked `in_turn` runs each day, the others count as slow.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TypeVar

import pytest
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

T = TypeVar("T")
DAYS = 10  # until each test in turn has run


@pytest.hookimpl(tryfirst=True)  # before pytest deselects by marker
def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    """Mark as slow the tests in turn whose turn is another day's (UTC)."""
    in_turn = [item for item in items if item.get_closest_marker("in_turn")]
    for item in of_another_day(in_turn, datetime.now(UTC).toordinal()):
        item.add_marker(pytest.mark.slow)


def of_another_day(items: Sequence[T], day: int) -> list[T]:
    """Return the items whose turn is not on this day, nine of any ten neighbors."""
    return [item for number, item in enumerate(items) if (number + day) % DAYS]
