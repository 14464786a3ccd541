"""The number of a dict's state changes with each change, and only then."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from triton_magics.harness.process import dict_versions
from triton_magics.harness.process.changed_names import Owner
from triton_magics.harness.process.dict_versions import version_of

ROOT = Path(__file__).parents[2]
CHANGES: tuple[Callable[[Any], object], ...] = (
    lambda owner: setattr(owner, "name", 3),
    lambda owner: setattr(owner, "other", 1),
    lambda owner: delattr(owner, "name"),
)


def owners() -> tuple[Any, ...]:
    """Return a module and a class with one name."""
    module, new = ModuleType("module"), type("New", (), {})
    for owner in (module, new):
        owner.name = 1  # type: ignore[union-attr]
    return module, new


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("kind", [0, 1], ids=["module", "class"])
def test_each_change_gives_a_new_number(kind: int, change: Callable[[Any], object]) -> None:
    owner = owners()[kind]
    if (version := version_of(vars(owner))) is None:
        pytest.skip("this interpreter has no such numbers")
    before = version.value
    assert owner.name == 1
    assert version.value == before
    change(owner)
    assert version.value != before


@pytest.mark.parametrize("has_versions", [True, False])
@pytest.mark.parametrize("kind", [0, 1], ids=["module", "class"])
def test_names_are_compared_with_and_without_numbers(
    monkeypatch: pytest.MonkeyPatch, kind: int, has_versions: bool
) -> None:
    monkeypatch.setattr(
        dict_versions, "_HAS_VERSIONS", has_versions and dict_versions._HAS_VERSIONS
    )
    module = owners()[kind]
    owner = Owner("module", module)
    assert not owner.has_changed()
    module.name = lambda: 1
    assert owner.has_changed()
    owner.accept()
    assert not owner.has_changed()
    function, module.name = module.name, len
    assert owner.restore() == ["module.name"]
    assert module.name is function


def test_an_interpreter_without_numbers_is_noticed() -> None:
    """One that looks elsewhere in the memory of a dict finds no numbers there."""
    program = (
        "from triton_magics.harness.process import dict_versions\n"
        "dict_versions._VERSION_AT = 0\n"
        "print(dict_versions._has_versions())"
    )
    answer = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert answer.stdout.strip() == "False"
