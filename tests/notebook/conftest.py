"""An IPython shell with the magics loaded, over a lab with a scripted engine; a panel of it."""

from __future__ import annotations

import atexit
from collections.abc import Iterator
from pathlib import Path

import pytest
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

import triton_magics
from tests.fake_executor import FakeExecutor
from tests.notebook.shells import KERNEL, Shell
from triton_magics.lab import Lab
from triton_magics.notebook.extension import TritonMagics
from triton_magics.notebook.panel import Panel


@pytest.fixture
def bare_shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shell]:
    """A shell without the extension, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / ".ipython"))
    InteractiveShell.clear_instance()
    config = Config({"HistoryManager": {"enabled": False}})
    shell = InteractiveShell.instance(config=config)
    # It would be kept until the process ends, and then collect garbage: 0.8 s for each of hundreds.
    atexit.unregister(shell.atexit_operations)
    yield Shell(shell)
    shell.extension_manager.unload_extension("triton_magics")
    InteractiveShell.clear_instance()


@pytest.fixture
def engine() -> FakeExecutor:
    return FakeExecutor()


@pytest.fixture
def shell(bare_shell: Shell, tmp_path: Path, engine: FakeExecutor) -> Shell:
    """A shell with the magics, whose engine answers at once."""
    bare_shell("%load_ext triton_magics")
    settings = next(c for c in bare_shell.shell.configurables if isinstance(c, TritonMagics))
    triton_magics.use(Lab(tmp_path, settings=settings, engine=engine))
    return bare_shell


@pytest.fixture
def lab(shell: Shell) -> Lab:
    """The lab behind that shell."""
    return triton_magics.default_lab()


@pytest.fixture
def panel(lab: Lab) -> Iterator[Panel]:
    """A panel of softmax with one version."""
    lab.write("softmax", "v1", KERNEL.format("v1"))
    lab.notes()
    panel = Panel(lab, "softmax")
    yield panel
    panel.close()
