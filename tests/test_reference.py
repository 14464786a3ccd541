"""The reference pages say what the code says."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from triton_magics.lab import Lab
from triton_magics.verbs import VERBS

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def reference() -> ModuleType:
    spec = importlib.util.spec_from_file_location("reference", ROOT / "scripts" / "reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["magics.md", "api.md"])
def test_a_page_is_current(reference: ModuleType, name: str) -> None:
    written = (ROOT / "docs" / name).read_text(encoding="utf-8")
    assert written == reference.PAGES[name](), "run python scripts/reference.py"


def test_every_magic_and_every_argument_is_on_its_page(reference: ModuleType) -> None:
    page = reference.PAGES["magics.md"]()
    for verb in VERBS.values():
        assert f"## `{verb.sign}`\n" in page
        for argument in verb.arguments:
            assert argument.options["help"] in page


def test_every_public_method_of_a_lab_is_on_its_page(reference: ModuleType) -> None:
    headings = set(re.findall(r"^### `Lab\.(\w+)`$", reference.PAGES["api.md"](), re.M))
    methods = {n for n in dir(Lab) if callable(getattr(Lab, n)) and not n.startswith("_")}
    assert headings == methods


def test_a_stale_page_is_found(
    reference: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reference, "DOCS", tmp_path)
    assert reference.main(["--check"]) == 1
    assert reference.main([]) == 0
    assert reference.main(["--check"]) == 0
    (tmp_path / "api.md").write_text("old")
    assert reference.main(["--check"]) == 1
