# ruff: noqa: F811 (a fixture is imported, and named again by each test that asks for it)
"""The package that `best --install` writes: what it chooses, and that it runs on its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import report_values as rv

from tests.fake_executor import FakeExecutor
from tests.lab_harness import engine, lab, write  # noqa: F401 (engine, lab: fixtures)
from triton_magics.errors import BadValue, WorkspaceError
from triton_magics.lab import Lab
from triton_magics.rendering.installed_package import FastestProvider, installed_package

USE = """
import torch
import softmax as package

x = torch.randn(3, 77)
assert package.choose(x) == "v1_baseline", package.choose(x)
assert torch.allclose(package.softmax(x), torch.softmax(x, -1), atol=1e-6)
assert package.choose(x.half()) == package.choose(x.new_empty(0)) == "torch"
assert torch.equal(package.softmax(x.half()), torch.softmax(x.half(), -1))
assert torch.equal(package.softmax(x[0]), torch.softmax(x[0], -1))  # v1 takes two dimensions
y = x.requires_grad_()
package.softmax(y).sum().backward()
assert y.grad is not None
torch.library.opcheck(torch.ops.kernels.softmax.default, (torch.randn(2, 5),))
import sys
assert not [name for name in sys.modules if name.startswith("triton_magics")]
"""
TWO_DIMENSIONS = rv.SOURCE.replace(
    "    out = torch",
    '    if x.dim() != 2:\n        raise ValueError("two dimensions")\n    out = torch',
)


def table_of(folder: Path) -> dict[str, list[tuple[int, str]]]:
    text = (folder / "__init__.py").read_text()
    start = text.index("TABLE = ") + len("TABLE = ")
    return eval(text[start : text.index("REFUSALS")])


def prepare(lab: Lab, engine: FakeExecutor) -> None:
    """Time v1, fastest at small, and v2, fastest at medium; torch is fastest at large."""
    engine.times_us = {"v1": (1, 9, 90), "v2": (3, 4, 80)}
    for version in ("v1", "v2"):
        write(lab, version)
        lab.validate("softmax", version)
    lab.bench("softmax")


def test_each_size_goes_to_the_fastest(lab: Lab, engine: FakeExecutor) -> None:
    prepare(lab, engine)
    best = lab.best("softmax", now=True, install=True)
    folder = lab.path / "installed" / "softmax"
    assert best.installed == "installed/softmax"
    assert table_of(folder)["float32"] == [
        (65536, "v1_baseline"), (1048576, "v2_tiling"), (16777216, "torch"),
    ]  # fmt: skip
    assert {p.name for p in folder.glob("*.py")} == {
        "__init__.py",
        "v1_baseline.py",
        "v2_tiling.py",
    }


def test_a_choice_by_hand_is_the_only_version(lab: Lab, engine: FakeExecutor) -> None:
    prepare(lab, engine)
    lab.best("softmax", "v2", now=True, install=True)
    providers = {who for _, who in table_of(lab.path / "installed" / "softmax")["float32"]}
    assert providers == {"torch", "v2_tiling"}


def test_a_file_of_the_user_is_not_replaced(lab: Lab, engine: FakeExecutor) -> None:
    prepare(lab, engine)
    own = lab.path / "installed" / "softmax" / "__init__.py"
    own.parent.mkdir(parents=True)
    own.write_text("mine = 1\n")
    with pytest.raises(WorkspaceError, match="not written by triton_magics"):
        lab.best("softmax", now=True, install=True)
    assert own.read_text() == "mine = 1\n"


def test_an_argument_that_is_no_number_is_refused() -> None:
    facts = rv.FACTS.evolve(signature="triton_softmax(x, mode='row')")
    with pytest.raises(BadValue, match="mode='row'"):
        installed_package(facts, [rv.source()], [], device=None)


@pytest.mark.slow
def test_the_package_runs_without_triton_magics(tmp_path: Path) -> None:
    pytest.importorskip("triton")
    package = tmp_path / "softmax"
    package.mkdir()
    files = installed_package(
        rv.FACTS,
        [rv.source("v1_baseline", code=TWO_DIMENSIONS)],
        [FastestProvider("float32", 1000, "v1_baseline", 1.0, 2.0)],
        device="NVIDIA H200",
    )
    for name, text in files.items():
        (package / name).write_text(text)
    environment = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", USE], cwd=tmp_path, env=environment, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
