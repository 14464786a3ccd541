"""The shipped quickstart and tour are those of their scripts, executed."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import nbformat
import pytest

ROOT = Path(__file__).parents[1]
NAMES = ("quickstart", "tour")


@pytest.fixture(params=NAMES)
def script(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    yield importlib.import_module(request.param)
    for name in NAMES:
        sys.modules.pop(name, None)


def test_a_shipped_notebook_has_the_texts_of_its_script(script: ModuleType) -> None:
    shipped = nbformat.read(script.TARGET, as_version=4)
    assert [(c.cell_type, c.source) for c in shipped.cells] == script.cells()


def test_a_shipped_notebook_was_executed_without_an_error(script: ModuleType) -> None:
    shipped = nbformat.read(script.TARGET, as_version=4)
    cells = [c for c in shipped.cells if c.cell_type == "code"]
    outputs = [o for c in cells for o in c.outputs]
    assert [c.execution_count for c in cells] == list(range(1, len(cells) + 1))
    assert not [o for o in outputs if o.output_type == "error"]


def test_a_shipped_notebook_shows_a_heat_map(script: ModuleType) -> None:
    shipped = nbformat.read(script.TARGET, as_version=4)
    (sweep,) = [c for c in shipped.cells if c.source.startswith("%triton_sweep")]
    assert any("image/png" in o.get("data", {}) for o in sweep.outputs)
