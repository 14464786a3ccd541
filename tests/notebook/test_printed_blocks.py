"""The code blocks of README and tutorial run as they are printed, from the first to the last."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.notebook.shells import Shell
from triton_magics import cli
from triton_magics.lab import Lab

ROOT = Path(__file__).parents[2]
PAGES = ("README.md", "docs/tutorial.md")
COMMANDS = ("make ", "pip ", "papermill ", "triton-magics ")
NEEDS_GPU = "# needs a GPU"  # at the end of a line; without one its error names one of these:
WHY = ("bfloat16", "no size has a time", "there is none here", "without a GPU", "two sizes or more")


def blocks(page: str) -> list[str]:
    """Return the text of each indented or fenced block of code, in order."""
    text = (ROOT / page).read_text(encoding="utf-8")
    pattern = r"^```python\n([\s\S]*?)^```|(?<=\n\n)((?:    .*\n|\n(?=    ))+)"
    matches = re.finditer(pattern, text, re.MULTILINE)
    return [m[1] or re.sub(r"^    ", "", m[2], flags=re.MULTILINE) for m in matches]


def cells(page: str) -> Iterator[str]:
    """Yield what a reader types into a notebook; lines of magics one by one, as some need a GPU."""
    for block in blocks(page):
        if block.startswith(COMMANDS):
            continue
        lines = block.splitlines()
        yield from lines if all(re.match(r"%\w", line) for line in lines) else [block]


def run_cells(shell: Shell, texts: Iterator[str]) -> dict[str, str]:
    """Run cells, and after `%triton_fix` the cell that it makes.

    Returns:
        The error of each cell that failed, by the cell's text.
    """
    failed = {}
    for text in texts:
        if (error := shell(text).error) is not None:
            failed[text] = str(error)
        if text.startswith("%triton_fix") and error is None:
            assert shell(str(shell.shell.rl_next_input)).error is None
    return failed


@pytest.mark.parametrize("page", PAGES)
def test_printed_magics_run(shell: Shell, lab: Lab, page: str) -> None:
    magics = (text for text in cells(page) if "tm.Lab" not in text)
    # The scripted engine passes every version: nothing to correct, and so no second attempt.
    assert {*run_cells(shell, magics)} <= {
        "%triton_fix softmax v1",
        "%triton_diff softmax v1:1 v1:2",
    }
    assert lab.versions("softmax")


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("page", PAGES)
def test_printed_blocks_run_in_the_interpreter(
    bare_shell: Shell,
    page: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("TRITON_MAGICS_DEVICE", "interpreter")
    monkeypatch.setenv("TRITON_MAGICS_VALIDATE_BUDGET_S", "1")
    monkeypatch.setenv("TRITON_MAGICS_BENCH_BUDGET_S", "1")
    failed = run_cells(bare_shell, cells(page))
    wrong = failed.pop("%triton_validate softmax v1 --quick", "WRONG")
    assert "WRONG" in wrong  # the tutorial's first version
    assert {text: error for text, error in failed.items() if NEEDS_GPU not in text} == {}
    assert [e for e in failed.values() if not any(reason in e for reason in WHY)] == []
    assert failed.keys() == {text for text in cells(page) if NEEDS_GPU in text}
    for block in blocks(page):
        if block.startswith("triton-magics "):
            capsys.readouterr()
            assert cli.main(block.split()[1:]) == 0
            assert json.loads(capsys.readouterr().out)["status"] == "passed"


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_readme_shows_the_verdict_of_its_kernel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    printed = re.search(r"^```text\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    kernel = next(block for block in blocks("README.md") if "def triton_softmax" in block)
    assert printed is not None
    fill = ', other=-float("inf")'
    assert kernel.count(fill) == 1
    source = kernel.partition("\n")[2].replace(fill, "").replace("triton_softmax", "softmax")
    (tmp_path / "softmax.py").write_text(source, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRITON_MAGICS_DEVICE", "interpreter")
    monkeypatch.setenv("COLUMNS", "100")
    assert cli.main(["import", "softmax.py:softmax", "--op", "softmax", "--version", "v1"]) == 0
    capsys.readouterr()
    assert cli.main(["validate", "softmax", "v1", "--quick", "--seed", "12287929"]) == 1
    assert capsys.readouterr().out.startswith(printed[1])
