"""`python -m triton_magics` is the command line."""

from __future__ import annotations

import subprocess
import sys

from triton_magics import __version__


def asked(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "triton_magics", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_package_can_be_run_and_ends_as_the_command_line_does() -> None:
    assert asked("--version").stdout == f"triton-magics {__version__}\n"
    wrong = asked("bench", "softmax", "--timer", "foo")
    assert wrong.returncode == 2
    assert "invalid choice: 'foo'" in wrong.stderr
