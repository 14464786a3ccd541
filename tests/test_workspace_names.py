"""Tests of names that can't be files, and of folders that can't be workspaces."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from workspace_kit import open_workspace, own_facts, write

from triton_magics.errors import BadName, BadValue, TritonMagicsError, WorkspaceError


@pytest.fixture
def ws(tmp_path):
    with open_workspace(tmp_path) as workspace:
        yield workspace


# ------------------------------------------------------------------------------------- names

BAD = [
    "", "..", ".", "/", "a/b", "../x", "v1/x", "a\0", "softmax\n", "v1\n", "Softmax", "sоftmax",
    "ｖ1", "v１", "ſoftmax", "_op", "a b", "a-b", "v1.py", "con:", "a" * 65, "soft\u200bmax",
]  # fmt: skip
BAD_OPS = [*BAD, "1op"]
BAD_VERSIONS = [*BAD, "v", "v0", "v01", "v1_", "v1__x", "v1_A", "v10000", "1", "softmax"]


@pytest.mark.parametrize("op", BAD_OPS)
def test_an_op_that_is_no_name_is_refused_by_every_method(ws, tmp_path, op):
    calls = [
        *with_version(ws, op, "v1"),
        lambda: ws.state(op),
        lambda: ws.versions(op),
        lambda: ws.define(op, "", own_facts()),
        lambda: ws.reference_path(op),
        lambda: ws.record(op, "shown"),
        lambda: ws.events(op),
        lambda: ws.count(op),
        lambda: ws.passed_validation(op, "0", "float32", "gpu"),
        lambda: ws.latest_benchmark(op),
        lambda: ws.ranking(op),
        lambda: ws.save_log(op, ".md", ""),
    ]
    refuses_all(calls, tmp_path)


@pytest.mark.parametrize("version", BAD_VERSIONS)
def test_a_version_that_is_no_name_is_refused_by_every_method(ws, tmp_path, version):
    refuses_all(with_version(ws, "softmax", version), tmp_path)


def with_version(ws, op, version):
    return [
        lambda: write(ws, version, 1, op=op),
        lambda: ws.source(op, version),
        lambda: ws.attempts(op, version),
        lambda: ws.sync(op, version),
        lambda: ws.restore(op, version, 1),
        lambda: ws.latest_validation(op, version),
    ]


def refuses_all(calls, tmp_path):
    before = sorted(tmp_path.rglob("*"))
    for call in calls:
        with pytest.raises(BadName):
            call()
    assert sorted(tmp_path.rglob("*")) == before


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(op=st.text(max_size=12), version=st.text(max_size=12))
def test_no_name_reaches_outside_its_folder(ws, tmp_path, op, version):
    try:
        source = write(ws, version, 1, op=op)
    except TritonMagicsError:
        return
    path = (tmp_path / source.path).resolve()
    assert path.parent == tmp_path / "kernels" / op
    assert path.is_file()


# ------------------------------------------------------------------------------- the folder


def test_a_missing_folder_is_made_if_its_parent_is_there(tmp_path):
    with open_workspace(tmp_path / "new") as ws:
        assert ws.path == tmp_path / "new"
    with pytest.raises(BadValue, match=r"no folder .*/deep: create it"):
        open_workspace(tmp_path / "deep" / "er")


def test_a_file_is_no_workspace(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(BadValue, match="is a file; the workspace is a folder"):
        open_workspace(tmp_path / "file")


def test_closing_twice_does_nothing(tmp_path):
    ws = open_workspace(tmp_path)
    ws.close()
    ws.close()
    with pytest.raises(WorkspaceError):
        ws.open_ops()


def test_without_history_no_log_is_written(tmp_path):
    with open_workspace(tmp_path, history=False) as ws:
        write(ws, "v1", 1)
    assert not (tmp_path / "logs").exists()
    with open_workspace(tmp_path) as ws:
        assert ws.count("softmax") == 1
    lines = (tmp_path / "logs/softmax_log.jsonl").read_text().splitlines()
    assert [json.loads(line)["verb"] for line in lines] == ["written"]
