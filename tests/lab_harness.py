"""Fixtures of the lab's tests: a lab with a scripted executor, and versions in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fake_executor import FakeExecutor
from triton_magics.config import Settings
from triton_magics.lab import Lab

SOURCE = "import triton\n\n\ndef triton_softmax(x):\n    return x  # {}\n"


@pytest.fixture
def engine() -> FakeExecutor:
    return FakeExecutor()


@pytest.fixture
def lab(tmp_path: Path, engine: FakeExecutor) -> Iterator[Lab]:
    with Lab(tmp_path, engine=engine, settings=Settings()) as lab:
        lab.op("softmax")
        yield lab


def write(lab: Lab, version: str, text: str = "as it is") -> str:
    return lab.write("softmax", version, SOURCE.format(version + text), cell_offset=1).source.sha256
