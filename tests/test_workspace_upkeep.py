"""Tests of the check and the repair of a workspace: each damage is named, nothing is lost."""

import sqlite3
from contextlib import closing

import pytest
from workspace_kit import database, open_workspace, past_session, visible_state, write

from triton_magics.errors import WorkspaceError


@pytest.fixture
def path(tmp_path):
    return past_session(tmp_path)


def list_findings(findings):
    return [(f.subject, f.state) for f in findings if f.state != "good"]


def test_sound_workspace_has_no_findings(path):
    with open_workspace(path) as ws:
        assert list_findings(ws.check()) == []
        details = {f.subject: f.detail for f in ws.check()}
    assert details["store"] == "sound, 5 events"
    assert details["state"] == "matches the events"


def test_check_changes_nothing(path):
    module = path / "kernels" / "softmax" / "v1_baseline.py"
    module.write_text(module.read_text() + "# edited\n")
    before = {p: p.read_bytes() for p in path.rglob("*") if p.is_file() and "lab.db" not in p.name}
    with open_workspace(path) as ws:
        state = visible_state(ws)
        assert list_findings(ws.check()) == [("kernels/softmax/v1_baseline.py", "warn")]
        assert visible_state(ws) == state
    assert {p: p.read_bytes() for p in before} == before


def test_repair_records_an_edit_and_restores_a_file(path):
    with open_workspace(path) as ws:
        write(ws, "v2", 1)
        module = path / "kernels" / "softmax" / "v1_baseline.py"
        module.write_text(module.read_text() + "# edited\n")
        (path / "kernels" / "softmax" / "v2_tiling.py").unlink()
        assert list_findings(ws.check()) == [
            ("kernels/softmax/v1_baseline.py", "warn"), ("kernels/softmax/v2_tiling.py", "warn"),
        ]  # fmt: skip
        assert list_findings(ws.repair()) == []
        assert ws.source("softmax", "v1").source.endswith("# edited\n")
        assert (path / "kernels" / "softmax" / "v2_tiling.py").exists()


def test_wrong_tables_are_rebuilt(path):
    with open_workspace(path) as ws:
        right = visible_state(ws)
        with closing(sqlite3.connect(database(path))) as conn, conn:
            conn.execute("UPDATE ops SET state = 'end'")
            conn.execute("DELETE FROM verdicts")
        assert list_findings(ws.check()) == [("state", "bad")]
        assert list_findings(ws.repair()) == []
        assert visible_state(ws) == right


def test_cut_or_deleted_log_is_written_again(path):
    log = path / "logs" / "softmax_log.jsonl"
    lines = log.read_text()
    with open_workspace(path) as ws:
        log.unlink()
        assert list_findings(ws.check()) == [("logs/softmax_log.jsonl", "warn")]
        assert list_findings(ws.repair()) == []
    assert sorted(log.read_text().splitlines()) == sorted(lines.splitlines())


def test_lines_without_an_event_are_counted_and_not_changed(path):
    log = path / "logs" / "softmax_log.jsonl"
    with log.open("a") as file:
        file.write("<<<<<<< ours\n" + '{"uuid": "x", "op": "gelu"}\n')
    with open_workspace(path) as ws:
        (finding,) = [f for f in ws.repair() if f.state != "good"]
        assert finding.detail.startswith("2 lines are not events of softmax")
    assert "<<<<<<< ours" in log.read_text()


def test_store_with_a_damaged_page_is_rebuilt(path, monkeypatch):
    """Opening a large store does not read every event; repairing it does."""
    monkeypatch.setattr("triton_magics.store.sqlite._SMALL_BYTES", 0)
    with open_workspace(path) as ws:
        for _ in range(40):
            ws.record("softmax", "shown")
        right, n_events = visible_state(ws), ws.count("softmax")
    data = bytearray(database(path).read_bytes())
    page = data.rindex(b'"verb":"shown"') // 4096 * 4096
    data[page : page + 100] = b"\xff" * 100
    database(path).write_bytes(data)
    with open_workspace(path) as ws:
        assert ws.notes == ()
        assert ("store", "bad") in list_findings(ws.check())
        findings = ws.repair()
        assert list_findings(findings) == [("store", "warn")]
        assert "lab.db.corrupt-1" in next(f.detail for f in findings if f.state == "warn")
        assert ws.count("softmax") == n_events
        assert visible_state(ws) == right


def test_link_in_a_modules_place_is_not_followed(path, tmp_path_factory):
    target = tmp_path_factory.mktemp("outside") / "x.py"
    target.write_text("secret = 1\n")
    module = path / "kernels" / "softmax" / "v1_baseline.py"
    module.unlink()
    module.symlink_to(target)
    with open_workspace(path) as ws:
        assert list_findings(ws.check()) == [("kernels/softmax/v1_baseline.py", "bad")]
        assert list_findings(ws.repair()) == [("kernels/softmax/v1_baseline.py", "bad")]
        assert any("not repaired, softmax" in note for note in ws.notes)
    assert target.read_text() == "secret = 1\n"


def test_read_only_workspace_is_checked_and_not_repaired(path, monkeypatch):
    monkeypatch.setattr("triton_magics.store.connection._writable", lambda _path: False)
    with open_workspace(path) as ws:
        assert list_findings(ws.check()) == [("workspace", "warn")]
        with pytest.raises(WorkspaceError, match="can't be written"):
            ws.repair()
