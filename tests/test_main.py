"""`python -m triton_magics` is the command line."""

from __future__ import annotations

import subprocess
import sys

from triton_magics import __version__


def run_module(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "triton_magics", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_package_runs_as_the_command_line() -> None:
    assert run_module("--version").stdout == f"triton-magics {__version__}\n"
    wrong = run_module("bench", "softmax", "--timer", "foo")
    assert wrong.returncode == 2
    assert "invalid choice: 'foo'" in wrong.stderr
