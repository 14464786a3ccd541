"""Tests of the tests in turn: a third of them each day."""

from __future__ import annotations

from pathlib import Path

import pytest

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


def test_three_days_run_each_test_in_turn_once(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    days = [collect(pytester, 739_000 + n, "-m", "not slow") for n in range(3)]
    everything = {f"test_heavy[{n}]" for n in range(7)} | {"test_light"}
    assert sorted(map(len, days)) == [3, 3, 4]
    assert set.union(*days) == everything
    assert set.intersection(*days) == {"test_light"}
    assert collect(pytester, 739_000) == everything
