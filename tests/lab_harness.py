"""What the lab's tests share: a lab with a scripted engine, and versions in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fake_engine import FakeEngine
from triton_magics.config import Settings
from triton_magics.lab import Lab

SOURCE = "import triton\n\n\ndef triton_softmax(x):\n    return x  # {}\n"


@pytest.fixture
def engine() -> FakeEngine:
    return FakeEngine()


@pytest.fixture
def lab(tmp_path: Path, engine: FakeEngine) -> Iterator[Lab]:
    with Lab(tmp_path, engine=engine, settings=Settings()) as made:
        made.op("softmax")
        yield made


def write(lab: Lab, version: str, text: str = "as it is") -> str:
    return lab.write("softmax", version, SOURCE.format(version + text), cell_offset=1).source.sha256
