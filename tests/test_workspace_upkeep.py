"""Looking at a workspace, and mending it: each damage is named, and nothing is lost by repair."""

import sqlite3
from contextlib import closing

import pytest
from workspace_kit import database, opened, past_session, shown, write

from triton_magics.errors import WorkspaceError


@pytest.fixture
def path(tmp_path):
    return past_session(tmp_path)


def ill(findings):
    return [(f.what, f.state) for f in findings if f.state != "good"]


def test_a_sound_workspace_has_nothing_to_mend(path):
    with opened(path) as ws:
        assert ill(ws.check()) == []
        says = {f.what: f.says for f in ws.check()}
    assert says["store"] == "sound, 5 events"
    assert says["state"] == "as the events say"


def test_looking_changes_nothing(path):
    module = path / "kernels" / "softmax" / "v1_baseline.py"
    module.write_text(module.read_text() + "# edited\n")
    before = {p: p.read_bytes() for p in path.rglob("*") if p.is_file() and "lab.db" not in p.name}
    with opened(path) as ws:
        kept = shown(ws)
        assert ill(ws.check()) == [("kernels/softmax/v1_baseline.py", "warn")]
        assert shown(ws) == kept
    assert {p: p.read_bytes() for p in before} == before


def test_an_edit_becomes_an_attempt_and_a_lost_file_is_put_back(path):
    with opened(path) as ws:
        write(ws, "v2", 1)
        module = path / "kernels" / "softmax" / "v1_baseline.py"
        module.write_text(module.read_text() + "# edited\n")
        (path / "kernels" / "softmax" / "v2_tiling.py").unlink()
        assert ill(ws.check()) == [
            ("kernels/softmax/v1_baseline.py", "warn"), ("kernels/softmax/v2_tiling.py", "warn"),
        ]  # fmt: skip
        assert ill(ws.repair()) == []
        assert ws.source("softmax", "v1").source.endswith("# edited\n")
        assert (path / "kernels" / "softmax" / "v2_tiling.py").exists()


def test_tables_that_lie_are_made_anew(path):
    with opened(path) as ws:
        right = shown(ws)
        with closing(sqlite3.connect(database(path))) as conn, conn:
            conn.execute("UPDATE ops SET state = 'end'")
            conn.execute("DELETE FROM verdicts")
        assert ill(ws.check()) == [("state", "bad")]
        assert ill(ws.repair()) == []
        assert shown(ws) == right


def test_a_log_that_was_cut_or_deleted_is_written_again(path):
    log = path / "logs" / "softmax_log.jsonl"
    lines = log.read_text()
    with opened(path) as ws:
        log.unlink()
        assert ill(ws.check()) == [("logs/softmax_log.jsonl", "warn")]
        assert ill(ws.repair()) == []
    assert sorted(log.read_text().splitlines()) == sorted(lines.splitlines())


def test_lines_that_are_no_events_are_counted_and_left(path):
    log = path / "logs" / "softmax_log.jsonl"
    with log.open("a") as file:
        file.write("<<<<<<< ours\n" + '{"uuid": "x", "op": "gelu"}\n')
    with opened(path) as ws:
        (finding,) = [f for f in ws.repair() if f.state != "good"]
        assert finding.says.startswith("2 lines are no event of softmax")
    assert "<<<<<<< ours" in log.read_text()


def test_a_page_of_events_that_broke_is_found_and_the_store_rebuilt(path, monkeypatch):
    """Opening a large store does not read every event; repairing it does."""
    monkeypatch.setattr("triton_magics.workspace.database._SMALL_BYTES", 0)
    with opened(path) as ws:
        for _ in range(40):
            ws.record("softmax", "shown")
        right, n_events = shown(ws), ws.count("softmax")
    data = bytearray(database(path).read_bytes())
    page = data.rindex(b'"verb":"shown"') // 4096 * 4096
    data[page : page + 100] = b"\xff" * 100
    database(path).write_bytes(data)
    with opened(path) as ws:
        assert ws.notes == ()
        assert ("store", "bad") in ill(ws.check())
        found = ws.repair()
        assert ill(found) == [("store", "warn")]
        assert "lab.db.corrupt-1" in next(f.says for f in found if f.state == "warn")
        assert ws.count("softmax") == n_events
        assert shown(ws) == right


def test_a_link_in_a_modules_place_is_named_and_not_followed(path, tmp_path_factory):
    target = tmp_path_factory.mktemp("outside") / "x.py"
    target.write_text("secret = 1\n")
    module = path / "kernels" / "softmax" / "v1_baseline.py"
    module.unlink()
    module.symlink_to(target)
    with opened(path) as ws:
        assert ill(ws.check()) == [("kernels/softmax/v1_baseline.py", "bad")]
        assert ill(ws.repair()) == [("kernels/softmax/v1_baseline.py", "bad")]
        assert any("not repaired, softmax" in note for note in ws.notes)
    assert target.read_text() == "secret = 1\n"


def test_a_copy_that_can_not_be_written_is_looked_at_and_not_repaired(path, monkeypatch):
    monkeypatch.setattr("triton_magics.workspace.store._writable", lambda _path: False)
    with opened(path) as ws:
        assert ill(ws.check()) == [("workspace", "warn")]
        with pytest.raises(WorkspaceError, match="can't be written"):
            ws.repair()
