"""Completion on the lines of the magics, and nowhere else."""

from __future__ import annotations

from pathlib import Path

import pytest
from IPython.core import completer
from IPython.core.completer import provisionalcompleter

import triton_magics
from tests.fake_executor import FakeExecutor
from tests.notebook.shells import Shell
from triton_magics.config import Settings
from triton_magics.lab import Lab
from triton_magics.notebook.completion import parse_line_start

BENCH = [
    "--sizes", "--shape", "--inputs", "--runs", "--dtype", "--against", "--hot", "--timer",
    "--census", "--backward-only", "--budget", "--seed", "--timeout", "--again", "--env",
    "--selftest", "--no-raise", "--bg", "--out", "--quiet", "--traceback", "--help",
]  # fmt: skip
USED = ("--hot", "--runs")
EVERY = ["--out", "--quiet", "--traceback", "--help"]
LINES = [
    ("%triton_bench softmax --", BENCH),
    ("%triton_bench softmax -", BENCH),
    ("%triton_bench softmax --hot --runs=3 --", [o for o in BENCH if o not in USED]),
    ("%triton_op soft", ["softmax"]),
    ("%triton_op layer", ["layer_norm", "layernorm"]),
    ("%triton_validate softmax ", ["v1", "v2", "all"]),
    ("%triton_bench softmax v1 ", ["v1", "v2", "all"]),
    ("%triton_bench softmax --against ", ["torch.compile", "v1", "v2"]),
    ("%triton_bench softmax --sizes m", ["medium"]),
    ("%triton_bench softmax --sizes small,l", ["large"]),
    ("%triton_bench softmax --sizes=small,l", ["large"]),
    ("x = %triton_run softmax v1 --size ", ["small", "medium", "large"]),
    ("n = 3\n%triton_run softmax v1 --dtype b", ["bfloat16"]),
    ("%%triton_kernel softmax ", ["v1", "v2", "v3"]),
    ("%%triton_kernel softmax v3 --e", ["--entry"]),
    ("%triton_template r", ["reduction"]),
    ("%triton_template reduction soft", ["softmax"]),
    ("%triton_template reduction softmax ", ["v3"]),
    ("%triton_ref onl", ["online_reduction"]),
    ("%triton_inspect softmax v1 --target sm_9", ["sm_90"]),
    ("%triton_panel vector_a", ["vector_add"]),
    ("%triton_plot softmax ", ["speedup", "times", "runs", "sweep"]),
    ("%triton_sweep softmax v1 num_warps=4 --w", ["--write"]),
    ("%triton_validate softmax v1 --cases ", ["full", "quick", "thorough"]),
    ("%triton_bench softmax --timer ", ["gated", "graph", "launch"]),
    ("# %%triton_kernel soft", ["softmax"]),
    ("%triton_diff softmax v1:", ["v1:1"]),
    ("%triton_diff softmax v1 v2:", ["v2:1"]),
    ("%triton_ref tl.ara", ["tl.arange"]),
    ("%triton_ref bank", ["bank_conflicts"]),
    ("%triton_panel softmax --", ["--dock", *EVERY]),
    ("%triton_best softmax --", ["--now", "--why", "--fastest", "--install", *EVERY]),
    ("%triton_log softmax --", ["--tests", *EVERY]),
    ("%triton_sweep softmax v1 --size ", ["small", "medium", "large"]),
    ("%triton_validate softmax --dtype float32,b", ["bfloat16"]),
    ("%triton_validate softmax v1 --cases q", ["quick"]),
    ("%triton_plot soft", ["softmax"]),
    ("%triton_fix softmax ", ["v1", "v2"]),
    ("%triton_profile softmax v2 --size l", ["large"]),
    ("%triton_diff softmax v1:1 v", ["v1", "v2"]),
    ("%triton_restore softmax v1 --attempt ", ["1"]),
    ("%triton_history soft", ["softmax"]),
    ("%%triton_note softmax ", ["v1", "v2"]),
    ("%%triton_kernel softmax v3 --type c", ["cuda"]),
    ("%%triton_kernel softmax v3 --technique onl", ["online_reduction"]),
    ("%triton_ops softmax,lay", ["layer_norm", "layernorm"]),
    ("    %triton_run softmax v", ["v1", "v2"]),
    ("x, y = %triton_run softmax v1 --dtype fl", ["float32", "float16"]),
    ("%triton_doctor --", ["--repair", *EVERY]),
]


def completions(shell: Shell, text: str) -> list[str]:
    with provisionalcompleter():
        return [c.text for c in shell.shell.Completer.completions(text, len(text))]


@pytest.fixture
def written(shell: Shell) -> Shell:
    """Two versions of softmax and none of another op."""
    shell.write("v1")
    shell.write("v2")
    return shell


@pytest.mark.parametrize(("text", "expected"), LINES)
def test_a_line_of_ours_is_completed_with_what_fits(
    written: Shell, text: str, expected: list[str]
) -> None:
    assert completions(written, text) == expected


def test_a_name_of_ones_own_is_whole_and_ops_in_use_are_first(written: Shell) -> None:
    written("%%triton_kernel softmax v5_crash\n\ndef triton_softmax(x):\n    return x\n")
    assert completions(written, "%triton_validate softmax v5") == ["v5_crash"]
    assert completions(written, "%%triton_kernel softmax v6") == ["v6"]
    assert completions(written, "%triton_validate ")[0] == "softmax"


def test_what_a_version_lets_be_swept_is_offered(written: Shell) -> None:
    code = "BLOCK = 4\nROWS = 2\n\n\ndef triton_softmax(x):\n    return x\n"
    written(f"%%triton_kernel softmax v3\n{code}")
    assert completions(written, "%triton_sweep softmax v3 ") == ["BLOCK=", "ROWS="]
    assert completions(written, "%triton_sweep softmax v3 BLOCK=4,8 R") == ["ROWS="]
    assert "BLOCK=" not in completions(written, "%triton_sweep softmax v9 ")


def test_a_comment_is_not_completed(written: Shell) -> None:
    assert parse_line_start("%triton_run softmax v1  # --") is None
    assert parse_line_start("%triton_run softmax '# v1' --") is not None


def test_an_option_that_may_be_repeated_is_offered_again(written: Shell) -> None:
    assert "--against" in completions(written, "%triton_bench softmax --against v1 --")


def test_the_users_own_ops_are_offered(shell: Shell, lab: Lab, tmp_path: Path) -> None:
    assert "softmax" in completions(shell, "%triton_status ")
    assert set(completions(shell, "%triton_status ")) == set(lab.op_names())


def test_a_word_that_nothing_fits_stays_as_it_is(written: Shell) -> None:
    assert completions(written, "%triton_validate softmax b") == ["b"]


def test_a_misspelt_op_has_no_versions(written: Shell) -> None:
    assert "v1" not in completions(written, "%triton_validate sofmax v")


@pytest.mark.parametrize("text", ["import o", "%%triton_kernel softmax v1\nimport o"])
def test_python_is_completed_as_ever(written: Shell, text: str) -> None:
    assert "os" in completions(written, text)


@pytest.mark.parametrize("line", ["triton_bench softmax ", "%triton_bench", "% triton_bench x", ""])
def test_a_line_that_is_no_magic_of_ours_is_left_alone(line: str) -> None:
    assert parse_line_start(line) is None


def test_to_complete_makes_no_workspace(bare_shell: Shell, tmp_path: Path) -> None:
    bare_shell("%load_ext triton_magics")
    assert completions(bare_shell, "%triton_op soft") == ["softmax"]
    assert triton_magics.open_lab() is None
    assert not (tmp_path / ".triton_magics").exists()


def test_versions_of_an_earlier_session_are_offered(bare_shell: Shell, tmp_path: Path) -> None:
    with Lab(tmp_path) as earlier:
        earlier.write("softmax", "v4", "def solve(x):\n    return x\n", compile=False)
    bare_shell("%load_ext triton_magics")
    assert completions(bare_shell, "%triton_validate softmax v") == ["v4"]


@pytest.mark.in_turn
def test_an_older_ipython_offers_the_same_among_its_own(
    bare_shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of 7.34, Colab's, which has matchers of the first kind alone; also run with it."""
    monkeypatch.delattr(completer, "context_matcher", raising=False)
    before = list(bare_shell.shell.Completer.custom_matchers)
    bare_shell("%load_ext triton_magics")
    triton_magics.use(Lab(tmp_path, engine=FakeExecutor(), settings=Settings()))
    bare_shell.write("v1")
    bare_shell.write("v2")
    for text, expected in LINES:
        if ":" in text:
            continue  # the older completer cuts a word at a colon
        assert set(expected) <= set(completions(bare_shell, text)), text
    assert "--sizes" not in completions(bare_shell, "import o")
    bare_shell("%unload_ext triton_magics")
    assert bare_shell.shell.Completer.custom_matchers == before


def test_a_shell_without_a_completer_still_has_the_magics(bare_shell: Shell) -> None:
    bare_shell.shell.Completer = None
    cell = bare_shell("%load_ext triton_magics")
    assert cell.error is None
    assert bare_shell("%triton_ref overview").error is None
    assert bare_shell("%unload_ext triton_magics").error is None
