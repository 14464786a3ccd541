"""Tests that the reference pages agree with the code."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from triton_magics import verbs
from triton_magics.lab import Lab

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def reference() -> ModuleType:
    spec = importlib.util.spec_from_file_location("reference", ROOT / "scripts" / "reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    "name",
    [
        "docs/magics.md",
        "docs/api.md",
        "triton_magics/lab/verb_methods.pyi",
        "triton_magics/__init__.pyi",
    ],
)
def test_a_page_is_current(reference: ModuleType, name: str) -> None:
    written = (ROOT / name).read_text(encoding="utf-8")
    assert written == reference.PAGES[name](), "run python scripts/reference.py"


def test_every_magic_and_every_argument_is_on_its_page(reference: ModuleType) -> None:
    page = reference.PAGES["docs/magics.md"]()
    for verb in verbs.every():
        assert f"## `{verb.sign}`\n" in page
        for argument in verb.arguments:
            assert argument.options["help"] in page


def test_every_public_method_of_a_lab_is_on_its_page(reference: ModuleType) -> None:
    headings = set(re.findall(r"^### `Lab\.(\w+)`$", reference.PAGES["docs/api.md"](), re.M))
    names = {*dir(Lab)} - {*verbs.OLD_NAMES}
    methods = {n for n in names if callable(getattr(Lab, n)) and not n.startswith("_")}
    assert headings == methods


def test_a_stale_page_is_found(
    reference: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reference, "ROOT", tmp_path)
    for name in reference.PAGES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    assert reference.main(["--check"]) == 1
    assert reference.main([]) == 0
    assert reference.main(["--check"]) == 0
    (tmp_path / "docs" / "api.md").write_text("old")
    assert reference.main(["--check"]) == 1
