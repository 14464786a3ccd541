"""A second kernel language, found by its entry point, in the verbs of a whole Lab."""

from __future__ import annotations

import io
import json
import os
import runpy
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from tests.languages.numpy_language import LANGUAGE
from triton_magics import cli, languages, rendering
from triton_magics.errors import BadValue, UnknownName
from triton_magics.lab import Lab
from triton_magics.languages.kernel_language import KernelLanguage
from triton_magics.model import Difference, OpState, Status
from triton_magics.rendering import view
from triton_magics.store import Workspace

pytestmark = pytest.mark.in_turn

ROOT = Path(__file__).parents[2]
BUILT_IN = languages.names()
ALL_NAMES = ", ".join((*BUILT_IN, "numpy"))
RIGHT = """\
import numpy as np
import torch
from tests.languages.numpy_language import kernel


@kernel
def relu_kernel(x, out):
    np.maximum(x, 0, out=out)


def numpy_relu(x):
    out = torch.empty_like(x)
    relu_kernel(x.numpy(), out.numpy())
    return out
"""
WRONG = RIGHT.replace("np.maximum(x, 0, out=out)", "np.abs(x, out=out)")


class SlashLanguage(type(LANGUAGE)):
    """The toy language with another suffix and comment sign."""

    name = "slash"
    suffix = ".slash"
    comment = "//"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Install a package with the toy language, for this process and its workers."""
    folder = tmp_path / "site"
    (folder / "toy-1.dist-info").mkdir(parents=True)
    (folder / "toy-1.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: toy\nVersion: 1\n"
    )
    (folder / "toy-1.dist-info" / "entry_points.txt").write_text(
        f"[{languages.GROUP}]\nnumpy = tests.languages.numpy_language:LANGUAGE\n"
    )
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setenv("PYTHONPATH", f"{folder}{os.pathsep}{ROOT}")
    languages.refresh()
    yield folder
    monkeypatch.undo()
    languages.refresh()


@pytest.fixture
def numpy() -> Iterator[KernelLanguage]:
    languages.register(LANGUAGE)
    yield LANGUAGE
    languages.unregister("numpy")


@pytest.fixture
def slash() -> Iterator[KernelLanguage]:
    languages.register(result := SlashLanguage())
    yield result
    languages.unregister("slash")


def workspace(path: Path) -> Workspace:
    return Workspace(path, lambda op, before, verb, versions: before)


def save(store: Workspace, version: str, language: str, text: str = RIGHT) -> None:
    store.write(
        "relu", version, text, entry="numpy_relu", signature="(x)", cell_offset=1, language=language
    )


def test_a_second_language_goes_through_the_lab(package: Path, tmp_path: Path) -> None:
    with Lab(tmp_path / "work") as lab:
        lab.op("relu")
        written = lab.kernel("relu", "v1", WRONG, type="numpy", cell_offset=1)
        assert (written.source.language, written.source.entry) == ("numpy", "numpy_relu")
        wrong = lab.validate("relu", "v1", plan="quick", dtypes=["float32"])
        assert wrong.status is Status.FAILED
        assert lab.kernel("relu", "v2", RIGHT, type="numpy", cell_offset=1).status is Status.PASSED
        right = lab.validate("relu", "v2", plan="quick", dtypes=["float32"])
        assert right.passed
        assert right.triton_kernels == ("relu_kernel",)
        for result in (written, wrong, right):  # what is true of Triton only is left out
            text = rendering.to_text(view(result))
            assert "Triton" not in text
            assert "BLOCK_SIZE" not in text
        timed = lab.bench("relu", "v2", sizes=["small"], runs=2, budget=5)
        assert "v2_tiling" in {timing.provider for timing in timed.timings}
        difference = lab.diff("relu", "v1", "v2")
        assert isinstance(difference, Difference)
        assert "np.maximum" in rendering.to_text(view(difference))
        state = lab.status("relu")
        assert isinstance(state, OpState)
        assert [version.language for version in state.versions] == ["numpy", "numpy"]
        lab.log("relu")
        with pytest.raises(BadValue, match="NumPy versions have no tunable parameters"):
            lab.sweep("relu", "v2", {"BLOCK_SIZE": [1, 2]})
        findings = lab.doctor().findings
        assert ALL_NAMES in {f.detail for f in findings if f.subject == "kernel languages"}
    cells = json.loads((tmp_path / "work/logs/relu_log.ipynb").read_text())["cells"]
    written_cells = ["".join(cell["source"]) for cell in cells]
    assert any("%%triton_kernel relu v2 --type numpy" in cell for cell in written_cells)


def test_help_lists_an_installed_language(package: Path) -> None:
    with redirect_stdout(io.StringIO()) as shown, pytest.raises(SystemExit):
        cli.main(["kernel", "--help"])
    assert f"kernel language (default: triton): {ALL_NAMES}" in " ".join(shown.getvalue().split())


def test_magic_help_lists_a_registered_language(numpy: KernelLanguage) -> None:
    from triton_magics import verbs
    from triton_magics.notebook.help import Help

    verb = verbs.load("kernel")
    text = Help(verb, verb.arguments).text
    assert "--type NAME, --language NAME" in text
    assert f"kernel language (default: triton): {ALL_NAMES}" in text


def test_an_unknown_language_is_refused_with_the_known_ones(
    numpy: KernelLanguage, tmp_path: Path
) -> None:
    with Lab(tmp_path) as lab, pytest.raises(UnknownName, match=f"Known: {ALL_NAMES}"):
        lab.kernel("relu", "v1", RIGHT, type="nunpy")


def test_the_header_names_any_language_but_triton(numpy: KernelLanguage, tmp_path: Path) -> None:
    with workspace(tmp_path) as store:
        save(store, "v1", "numpy")
        save(store, "v2", "triton")
    first, second = (
        (tmp_path / f"kernels/relu/{name}.py").read_text().splitlines()[0]
        for name in ("v1_baseline", "v2_tiling")
    )
    assert first.startswith("# relu v1_baseline (language: numpy), written by")
    assert second.startswith("# relu v2_tiling, written by")


def test_the_language_decides_suffix_and_comment_sign(
    slash: KernelLanguage, tmp_path: Path
) -> None:
    with workspace(tmp_path) as store:
        save(store, "v1", "triton")
        save(store, "v1", "slash")
        (state,) = store.versions("relu")
    assert state.path == "kernels/relu/v1_baseline.slash"
    assert (tmp_path / state.path).read_text().startswith("// relu v1_baseline (language: slash)")
    assert not (tmp_path / "kernels/relu/v1_baseline.py").exists()
    package = runpy.run_path(str(tmp_path / "kernels/relu/__init__.py"))
    assert package["VERSIONS"] == ()


def test_an_edited_file_keeps_its_language(slash: KernelLanguage, tmp_path: Path) -> None:
    with workspace(tmp_path) as store:
        save(store, "v1", "slash")
        path = tmp_path / "kernels/relu/v1_baseline.slash"
        path.write_text(path.read_text() + "# edited\n")
        edited = store.sync("relu", "v1")
    assert edited is not None
    assert (edited.attempt, edited.language) == (2, "slash")


@pytest.mark.parametrize("lost", [".triton_magics", "both"])
def test_a_lost_store_is_rebuilt_with_the_language(
    slash: KernelLanguage, tmp_path: Path, lost: str
) -> None:
    with workspace(tmp_path) as store:
        save(store, "v1", "slash")
    for path in (tmp_path / ".triton_magics").iterdir():
        path.unlink() if path.is_file() else None
    if lost == "both":
        (tmp_path / "logs/relu_log.jsonl").unlink()
    with workspace(tmp_path) as store:
        assert store.source("relu", "v1").language == "slash"


def test_a_workspace_opens_without_the_package_of_a_language(tmp_path: Path) -> None:
    languages.register(SlashLanguage())
    with workspace(tmp_path) as store:
        save(store, "v1", "slash")
    languages.unregister("slash")
    with Lab(tmp_path) as lab:
        state = lab.status("relu")
        assert isinstance(state, OpState)
        assert state.versions[0].path == "kernels/relu/v1_baseline.slash"
        findings = [f for f in lab.session.workspace.check() if f.state != "good"]
        assert [f.remedy for f in findings] == ["install the package that provides 'slash'"]
        with pytest.raises(UnknownName, match="no kernel language 'slash'"):
            lab.validate("relu", "v1")
    assert (tmp_path / "kernels/relu/v1_baseline.slash").exists()


def test_a_broken_package_is_reported_and_harms_nothing(package: Path) -> None:
    entry_points = package / "toy-1.dist-info" / "entry_points.txt"
    entry_points.write_text(f"[{languages.GROUP}]\nbroken = nowhere.at_all:LANGUAGE\n")
    languages.refresh()
    assert [language.name for language in languages.available()] == list(BUILT_IN)
    assert "nowhere" in languages.load_problems()["broken"]
    languages.set_worker_environment("interpreter", None, {})
