"""Tests of the tests in turn: a fifth of them each day."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import DAYS, of_another_day

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[1]
CONFTEST = """
from datetime import datetime

from tests import conftest
from tests.conftest import pytest_collection_modifyitems


class Clock:
    @staticmethod
    def now(zone):
        return datetime.fromordinal({day})


conftest.datetime = Clock
"""
SEVEN = """
import pytest


@pytest.mark.in_turn
@pytest.mark.parametrize("n", range(7))
def test_heavy(n): ...


def test_light(): ...
"""


def collect(pytester: pytest.Pytester, day: int, *options: str) -> set[str]:
    pytester.makeconftest(CONFTEST.format(day=day))
    pytester.makepyfile(test_seven=SEVEN)
    pytester.makeini("[pytest]\nmarkers = slow\n  in_turn")
    run = pytester.runpytest_subprocess("--collect-only", "-q", *options)
    assert run.ret == 0
    return {line.split("::")[1] for line in run.outlines if "::" in line}


def test_ten_days_run_each_test_in_turn_once() -> None:
    items = [f"test_heavy[{n}]" for n in range(17)]
    days = [set(items) - set(of_another_day(items, 739_000 + n)) for n in range(DAYS)]
    assert sorted(map(len, days)) == 3 * [1] + 7 * [2]
    assert set.union(*days) == set(items)


def test_a_day_has_its_tests_and_the_light_ones(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    assert collect(pytester, 739_000, "-m", "not slow") == {"test_heavy[0]", "test_light"}
    assert len(collect(pytester, 739_000)) == 8
