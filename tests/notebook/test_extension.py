"""Loading, settings, and that unloading leaves nothing behind."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import triton_magics
from tests.fake_executor import FakeExecutor
from tests.notebook.shells import Shell
from triton_magics import lab_thread
from triton_magics.errors import UnknownName
from triton_magics.lab import Lab
from triton_magics.model import OpState
from triton_magics.notebook import extension

HEAVY = ("torch", "triton", "matplotlib", "ipywidgets", "nbformat")


def traces(shell: Any) -> dict[str, Any]:
    """Return all that an extension can leave in a shell."""
    magics = shell.magics_manager.magics
    formatter = shell.display_formatter.mimebundle_formatter
    return {
        "line": sorted(magics["line"]),
        "cell": sorted(magics["cell"]),
        "matchers": len(shell.Completer.custom_matchers),
        "configurables": sorted(type(c).__name__ for c in shell.configurables),
        "transformers": len(shell.input_transformers_cleanup),
        "callbacks": {name: len(handlers) for name, handlers in shell.events.callbacks.items()},
        "formatters": (len(formatter.type_printers), len(formatter.deferred_printers)),
    }


OVERTAKING_IMPORT = """
import builtins, sys, threading
from IPython.core.interactiveshell import InteractiveShell

class SlowImport:
    def find_spec(self, name, path=None, target=None):
        in_thread = threading.current_thread().name == "triton-import"
        if in_thread and name == "triton_magics.model.state":
            overtaken.wait(0.5)  # the package is half imported

def watched(name, *arguments, **options):
    if threading.current_thread() is threading.main_thread() and name.endswith("model.sweep"):
        overtaken.set()
    return real(name, *arguments, **options)

overtaken, real = threading.Event(), builtins.__import__
shell = InteractiveShell.instance()
sys.meta_path.insert(0, SlowImport())
builtins.__import__ = watched
shell.run_cell("%load_ext triton_magics").raise_error()
shell.run_cell("%triton_panel softmax").raise_error()
"""


@pytest.mark.parametrize("error", ["ImportError", "RuntimeError", "SystemExit"])
def test_a_module_that_fails_to_import_lets_the_verbs_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: str
) -> None:
    (tmp_path / f"fails_with_{error}.py").write_text(f"raise {error}")
    monkeypatch.syspath_prepend(tmp_path)
    lab_thread.start([f"fails_with_{error}"], None)
    is_free = lab_thread._importing.acquire(timeout=60)
    lab_thread._importing.release()
    assert is_free


def test_where_no_thread_can_start_the_verbs_import(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    lab_thread.start([], None)
    assert not lab_thread.is_importing()


def test_the_first_magic_waits_for_the_threads_imports(
    tmp_path: Path,
) -> None:
    Lab(tmp_path).close()
    (tmp_path / ".triton_magics").mkdir(exist_ok=True)
    done = subprocess.run(
        [sys.executable, "-c", OVERTAKING_IMPORT],
        cwd=tmp_path,
        env={**os.environ, "TRITON_MAGICS_DEVICE": "interpreter"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_loading_is_silent_and_imports_nothing_heavy(tmp_path: Path) -> None:
    code = (
        "import sys, threading\n"
        "from IPython.core.interactiveshell import InteractiveShell\n"
        "shell = InteractiveShell.instance()\n"
        "before = set(sys.modules)\n"
        "shell.run_cell('%load_ext triton_magics')\n"
        "[t.join() for t in threading.enumerate() if t.name == 'triton-import']\n"
        "assert 'triton_magics.lab' in sys.modules\n"
        f"loaded = [m for m in {HEAVY!r} if m in set(sys.modules) - before]\n"
        "assert not loaded, loaded\n"
        "assert 'triton_bench' in shell.magics_manager.magics['line']\n"
    )
    root = Path(triton_magics.__file__).parent.parent
    ran = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "IPYTHONDIR": str(tmp_path), "PYTHONPATH": str(root)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")
    assert not (tmp_path / ".triton_magics").exists()


@pytest.mark.parametrize(("option", "is_shown"), [("", True), (" -q", False), (";", False)])
def test_the_first_verb_shows_that_the_engine_is_imported(
    bare_shell: Shell, monkeypatch: pytest.MonkeyPatch, option: str, is_shown: bool
) -> None:
    lines: list[str] = []
    may_end = threading.Event()

    class SlowEngine:
        def find_spec(self, name: str, path: object = None, target: object = None) -> None:
            if name == "slow_engine":
                may_end.wait(60)

    def show(text: str, *, is_final: bool) -> None:
        lines.append(text)
        may_end.set()

    def wait() -> None:
        if not is_shown:
            may_end.set()  # nothing else would
        really_wait()

    really_wait = lab_thread.wait_for_imports
    monkeypatch.setattr(lab_thread, "wait_for_imports", wait)
    monkeypatch.setattr(extension, "_ENGINE", ("slow_engine",))
    monkeypatch.setattr(sys, "meta_path", [SlowEngine(), *sys.meta_path])
    monkeypatch.setattr(extension.Extension, "_progress_display", lambda _self: show)
    bare_shell("%load_ext triton_magics")
    bare_shell("%triton_ref" + option)
    assert [line.split(" · ")[0] for line in lines] == ["importing triton_magics", ""] * is_shown


def test_unloading_leaves_nothing_behind(bare_shell: Shell) -> None:
    bare_shell("%config")  # IPython makes some of its own magics only when one is used
    before = traces(bare_shell.shell)
    bare_shell("%load_ext triton_magics")
    assert traces(bare_shell.shell) != before
    bare_shell("%triton_status")
    bare_shell("%unload_ext triton_magics")
    assert traces(bare_shell.shell) == before


def test_unloading_closes_the_lab(shell: Shell, engine: FakeExecutor) -> None:
    shell("%unload_ext triton_magics")
    assert engine.closed == 1
    assert triton_magics.open_lab() is None


@pytest.mark.parametrize("again", ["%reload_ext triton_magics", "%load_ext triton_magics"])
def test_loading_again_leaves_nothing_twice(bare_shell: Shell, again: str) -> None:
    bare_shell("%load_ext triton_magics")
    once = traces(bare_shell.shell)
    bare_shell(again)
    assert traces(bare_shell.shell) == once


def test_the_hook_called_twice_registers_once(bare_shell: Shell) -> None:
    bare_shell("%load_ext triton_magics")
    once = traces(bare_shell.shell)
    triton_magics.load_ipython_extension(bare_shell.shell)
    assert traces(bare_shell.shell) == once


def test_unloading_what_is_not_loaded_does_nothing(bare_shell: Shell) -> None:
    before = traces(bare_shell.shell)
    triton_magics.unload_ipython_extension(bare_shell.shell)
    assert traces(bare_shell.shell) == before


# ---------------------------------------------------------------------------------- the lab


def test_no_lab_is_made_before_a_verb_is_used(bare_shell: Shell, tmp_path: Path) -> None:
    bare_shell("%load_ext triton_magics")
    bare_shell("%triton_bench --help")
    assert triton_magics.open_lab() is None
    bare_shell("%triton_status")
    lab = triton_magics.open_lab()
    assert lab is not None
    assert lab.path == tmp_path.resolve()


def test_the_functions_and_the_magics_work_on_one_lab(shell: Shell, lab: Lab) -> None:
    shell("import triton_magics as tm")
    shell("%triton_op softmax")
    assert shell("tm.status('softmax')").value.state == "write"
    shell("x = %triton_status softmax")
    assert lab.last is shell.shell.user_ns["x"]


# ----------------------------------------------------------------------------------- config


def test_config_lists_and_sets_what_a_lab_obeys(shell: Shell, lab: Lab) -> None:
    listed = shell("%config TritonMagics").stdout
    assert listed.startswith("TritonMagics(Settings) options")
    assert "TritonMagics.min_writes=<Int>" in listed
    shell("%config TritonMagics.min_writes = 5")
    state = lab.status("softmax")
    assert isinstance(state, OpState)
    assert state.min_writes == 5


def test_config_of_a_kernel_profile_is_read(bare_shell: Shell) -> None:
    bare_shell.shell.config.TritonMagics.min_writes = 7
    bare_shell("%load_ext triton_magics")
    assert bare_shell("%config TritonMagics.min_writes").value == 7


def test_config_of_an_unknown_name_suggests_a_name(
    shell: Shell, caplog: pytest.LogCaptureFixture
) -> None:
    cell = shell("%config TritonMagics.workspce = 'x'\nafter = 1")
    assert type(cell.error) is UnknownName
    assert "no setting 'workspce'. Did you mean 'workspace'?" in str(cell.error)
    assert cell.lines == [f"UnknownName: {cell.error}"]
    assert "after" not in shell.shell.user_ns
    assert caplog.text == ""


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("min_writes = 0", "min_writes must be a whole number from 1, not 0"),
        ("strict = 'x'", "strict must be true or false, not 'x'"),
        ("device = 'cuda'", "device must be one of 'auto', 'gpu', 'interpreter', not 'cuda'"),
    ],
)
def test_config_of_a_wrong_value_changes_nothing(shell: Shell, line: str, message: str) -> None:
    name = line.split(" ", maxsplit=1)[0]
    before = shell(f"%config TritonMagics.{name}").value
    assert f"%config TritonMagics: {message}" in str(shell(f"%config TritonMagics.{line}").error)
    assert shell(f"%config TritonMagics.{name}").value == before


def test_unloading_restores_the_config_magic(bare_shell: Shell) -> None:
    original = bare_shell.shell.find_line_magic("config")
    bare_shell("%load_ext triton_magics")
    bare_shell("%unload_ext triton_magics")
    assert bare_shell.shell.find_line_magic("config") == original


def test_config_precedes_environment_pyproject_and_profile(
    bare_shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pyproject.toml").write_text(
        "[tool.triton_magics]\nmin_writes = 5\nsilence_s = 5.0\njob_s = 5.0\n"
    )
    monkeypatch.setenv("TRITON_MAGICS_SILENCE_S", "6")
    monkeypatch.setenv("TRITON_MAGICS_JOB_S", "6")
    bare_shell.shell.config.TritonMagics.min_writes = 7
    bare_shell.shell.config.TritonMagics.compile_s = 7
    bare_shell("%load_ext triton_magics")
    bare_shell("%config TritonMagics.job_s = 8")

    def value(name: str) -> object:
        return bare_shell(f"%config TritonMagics.{name}").value

    names = ("compile_s", "min_writes", "silence_s", "job_s")
    assert [value(name) for name in names] == [7, 5, 6, 8]
    (tmp_path / "other").mkdir()
    bare_shell("%config TritonMagics.workspace = 'other'")
    assert [value(name) for name in names] == [7, 7, 6, 8]


def test_a_setting_that_cant_be_stops_loading_in_one_line(
    bare_shell: Shell, tmp_path: Path
) -> None:
    bare_shell("%unload_ext triton_magics")  # as above: IPython makes this magic when it is used
    before = traces(bare_shell.shell)
    (tmp_path / "pyproject.toml").write_text("[tool.triton_magics]\nstrct = true\n")
    cell = bare_shell("%load_ext triton_magics")
    (line,) = cell.lines
    assert line.startswith("UnknownName: [tool.triton_magics] in")
    assert "Did you mean 'strict'?" in line
    assert traces(bare_shell.shell) == before
    (tmp_path / "pyproject.toml").unlink()
    assert bare_shell("%load_ext triton_magics").error is None


def test_another_workspace_is_another_lab(
    shell: Shell, engine: FakeExecutor, tmp_path: Path
) -> None:
    first = triton_magics.default_lab()
    shell("%config TritonMagics.workspace = 'elsewhere'")
    assert engine.closed == 1
    second = triton_magics.default_lab()
    assert second is not first
    assert second.path == tmp_path.resolve() / "elsewhere"


def test_another_engine_takes_the_next_job(shell: Shell, engine: FakeExecutor) -> None:
    shell("%triton_doctor")
    shell("%config TritonMagics.engine = 'ssh://no-such-host.invalid'")
    assert engine.closed == 1
    assert "no-such-host" in str(triton_magics.default_lab().engine_state().device)
