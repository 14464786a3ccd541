"""The tests of a GPU can run in parts, which together are all of them."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import pytest

from tests.gpu import conftest


def run_part(part: str | None, items: list[Any]) -> list[Any]:
    """Return the items that are left of a collection."""
    hook = SimpleNamespace(pytest_deselected=lambda items: None)
    config: Any = SimpleNamespace(getoption=lambda name, default: part, hook=hook)
    conftest.pytest_collection_modifyitems(config, items)
    return items


def test_parts_have_every_test_once_and_are_of_one_size() -> None:
    parts = [run_part(f"{i}/3", list(range(89))) for i in (1, 2, 3)]
    assert sorted(itertools.chain(*parts)) == run_part(None, list(range(89)))
    assert [len(part) for part in parts] == [30, 30, 29]


@pytest.mark.parametrize("part", ["4/3", "0/3", "1", "1/0", "a/b", "1/3/3"])
def test_a_part_that_is_none_is_refused(part: str) -> None:
    with pytest.raises(pytest.UsageError, match="write 2/3"):
        run_part(part, [1, 2, 3])
