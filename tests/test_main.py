"""`python -m triton_magics` is the command line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from triton_magics import __version__


def run_module(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "triton_magics", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_package_runs_as_the_command_line() -> None:
    assert run_module("--version").stdout == f"triton-magics {__version__}\n"
    wrong = run_module("bench", "softmax", "--timer", "foo")
    assert wrong.returncode == 2
    assert "invalid choice: 'foo'" in wrong.stderr


def test_output_that_is_not_utf8_is_escaped(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    monkeypatch.chdir(tmp_path)
    ran = run_module("ref", "overview")
    assert ran.returncode == 0, ran.stderr
    assert "\\u" in ran.stdout or "\\x" in ran.stdout
    assert "Traceback" not in ran.stderr
