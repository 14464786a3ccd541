"""Tests that the wheel is small, complete and usable without the repository."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from triton_magics import operators

ROOT = Path(__file__).parents[1]
MAX_BYTES = 4_000_000  # two thirds of it are 22 notebooks with their outputs


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("hatchling")
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("installed")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def files(folder: Path, pattern: str) -> set[str]:
    """Return the tracked files of a folder, relative to it."""
    listed = subprocess.run(
        ["git", "ls-files", "--", pattern], cwd=folder, check=True, capture_output=True, text=True
    )
    return set(listed.stdout.split())


def test_the_wheel_is_small(wheel: Path) -> None:
    assert wheel.stat().st_size < MAX_BYTES


def test_the_wheel_contains_package_knowledge_and_notebooks(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        packed = set(archive.namelist())
    code = {f"triton_magics/{name}" for name in files(ROOT / "triton_magics", "*.py")}
    code |= {f"triton_magics/{name}" for name in files(ROOT / "triton_magics", "*.pyi")}
    code |= {f"triton_magics/{name}" for name in files(ROOT / "triton_magics", "*.md")}
    knowledge = {f"triton_magics/_knowledge/{name}" for name in files(ROOT / "knowledge", ".")}
    notebooks = {f"triton_magics/_notebooks/{name}" for name in files(ROOT / "notebooks", ".")}
    assert "triton_magics/_notebooks/quickstart.ipynb" in notebooks
    assert {Path(name).suffix for name in notebooks} == {".ipynb"}
    assert code | knowledge | notebooks | {"triton_magics/py.typed"} <= packed
    others = packed - code - knowledge - notebooks - {"triton_magics/py.typed"}
    untracked = sorted(name for name in others if ".dist-info/" not in name)
    assert untracked == [], "git add these files, or keep them out of the wheel"


def test_an_installed_wheel_finds_knowledge_and_notebooks(installed: Path, tmp_path: Path) -> None:
    program = (
        "import triton_magics; from triton_magics import knowledge; "
        "print(triton_magics.__file__, len(knowledge.op_names()), knowledge.search('tiling').title)"
    )
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    words = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path, env=environment, check=True, capture_output=True, text=True,
    ).stdout.split()  # fmt: skip
    assert words == [
        str(installed / "triton_magics" / "__init__.py"), str(len(operators.names())), "Tiling",
    ]  # fmt: skip
    subprocess.run(
        [sys.executable, "-m", "triton_magics", "quickstart", str(tmp_path / "copies")],
        cwd=tmp_path, env=environment, check=True, capture_output=True,
    )  # fmt: skip
    copies = {path.name for path in (tmp_path / "copies").iterdir()}
    assert copies == files(ROOT / "notebooks", ".")
