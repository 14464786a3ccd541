"""`--part 2/3`: every third test only, so that a file may run in parts, or in several processes."""

from __future__ import annotations

import re

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.addoption("--part", metavar="I/N", help="run part I of N of the tests: 2/3")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests of other parts.

    Raises:
        pytest.UsageError: the option names no part.
    """
    if (part := config.getoption("--part", None)) is None:
        return
    match = re.fullmatch(r"([1-9]\d*)/([1-9]\d*)", part)
    if not match or int(match[1]) > int(match[2]):
        raise pytest.UsageError(f"--part {part}: write 2/3 for the second of three")
    first, count = int(match[1]) - 1, int(match[2])
    chosen = items[first::count]
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    items[:] = chosen
