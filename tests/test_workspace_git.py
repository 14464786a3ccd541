"""A workspace in a git repository: other branches, merges, a clean tree."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from workspace_kit import open_workspace, write

from triton_magics.config import Settings
from triton_magics.errors import UnknownOp
from triton_magics.lab import Lab

LOG = "logs/softmax_log.jsonl"
Git = Callable[..., str]


@pytest.fixture
def git(tmp_path: Path) -> Git:
    def run(*arguments: str) -> str:
        command = ["git", "-c", "user.name=me", "-c", "user.email=me@example.org", *arguments]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run("init", "--quiet", "--initial-branch=main")
    return run


def commit(git: Git) -> None:
    git("add", "--all")
    git("commit", "--quiet", "--message=more")


def uuids(path: Path) -> list[str]:
    return [json.loads(line)["uuid"] for line in (path / LOG).read_text().splitlines()]


def test_opening_after_a_checkout_leaves_the_tree_clean(tmp_path: Path, git: Git) -> None:
    with open_workspace(tmp_path) as ws:
        write(ws, "v1", 1)
        write(ws, "v1", 2, op="gelu")
    commit(git)
    git("switch", "--quiet", "--create", "feature")
    with open_workspace(tmp_path) as ws:
        write(ws, "v1", 3)
        write(ws, "v2", 4)
        write(ws, "v1", 5, op="tanh")
    commit(git)
    git("switch", "--quiet", "main")
    for _ in range(2):
        with open_workspace(tmp_path) as ws:
            assert ws.versions("softmax")
        with Lab(tmp_path, settings=Settings(device="interpreter")) as lab:
            lab.status()
            lab.source("softmax", "v2")
        assert git("status", "--porcelain") == ""


def test_the_next_event_makes_the_log_whole_again(tmp_path: Path, git: Git) -> None:
    with open_workspace(tmp_path) as ws:
        write(ws, "v1", 1)
    commit(git)
    git("switch", "--quiet", "--create", "feature")
    with open_workspace(tmp_path) as ws:
        write(ws, "v2", 2)
    commit(git)
    git("switch", "--quiet", "main")
    with open_workspace(tmp_path) as ws:
        write(ws, "v3", 3)
        assert len(uuids(tmp_path)) == ws.count("softmax")
    (tmp_path / ".triton_magics" / "lab.db").unlink()
    with open_workspace(tmp_path) as ws:
        assert [v.version for v in ws.versions("softmax")] == [
            "v1_baseline", "v2_tiling", "v3_coalesced"
        ]  # fmt: skip


def test_two_branches_merge_without_a_conflict(tmp_path: Path, git: Git) -> None:
    with open_workspace(tmp_path) as ws:
        write(ws, "v1", 1)
    commit(git)
    names = {}
    for branch, version in (("ours", "v2"), ("theirs", "v3")):
        git("switch", "--quiet", "--create", branch, "main")
        (tmp_path / ".triton_magics" / "lab.db").unlink()  # another person's clone
        with open_workspace(tmp_path) as ws:
            names[branch] = write(ws, version, branch).version
        commit(git)
    git("merge", "--quiet", "--no-edit", "ours")
    assert len(uuids(tmp_path)) == 3
    with open_workspace(tmp_path) as ws:
        assert {v.version for v in ws.versions("softmax")} == {"v1_baseline", *names.values()}
    assert git("status", "--porcelain") == ""


def test_a_workspace_that_has_logs_gets_no_attributes(tmp_path: Path) -> None:
    with open_workspace(tmp_path) as ws:
        write(ws, "v1", 1)
    attributes = tmp_path / "logs" / ".gitattributes"
    assert attributes.read_text() == "*_log.jsonl merge=union\n"
    attributes.unlink()
    with open_workspace(tmp_path) as ws:
        write(ws, "v1", 2, op="gelu")
    assert not attributes.exists()


def test_an_own_op_without_its_record_says_where_its_text_is(tmp_path: Path) -> None:
    lost = tmp_path / "kernels" / "double"
    lost.mkdir(parents=True)
    (lost / "reference.py").write_text("def reference(x):\n    return 2 * x\n")
    with Lab(tmp_path, settings=Settings(device="interpreter")) as lab:
        with pytest.raises(UnknownOp, match="kernels/double/reference.py is here"):
            lab.op("double")
        with pytest.raises(UnknownOp, match="unknown op 'tripple'"):
            lab.op("tripple")
