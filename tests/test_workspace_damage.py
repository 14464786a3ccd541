"""Tests of damaged, older, newer and very long stores."""

import json
import os
import shutil
import sqlite3
from contextlib import closing

import pytest
from workspace_kit import (
    child,
    database,
    open_workspace,
    past_session,
    tables,
    visible_state,
    wait_for_output,
    write,
)

from triton_magics.errors import WorkspaceError
from triton_magics.store.sqlite import MIGRATIONS

LOG = "logs/softmax_log.jsonl"


def log_lines(path):
    return [json.loads(line) for line in (path / LOG).read_text().splitlines()]


# ------------------------------------------------------------------------------------- damage


@pytest.fixture
def session(tmp_path):
    return past_session(tmp_path / "session")


def read_state(path):
    with open_workspace(path) as ws:
        return visible_state(ws), ws.notes


def overwrite(path, at, data):
    with path.open("r+b") as file:
        file.seek(at)
        file.write(data)


DAMAGES = {
    "no database": lambda path: path.write_bytes(b"this is not a database, not at all" * 100),
    "a scribbled header": lambda path: overwrite(path, 0, b"\0" * 64),
    "a scribbled schema": lambda path: overwrite(path, 100, b"\xff" * 3000),
    "a scribbled page": lambda path: overwrite(path, 4096 * 3, b"\x5a" * 4096),
    "a lost end": lambda path: os.truncate(path, path.stat().st_size // 2),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_store_is_moved_aside_and_rebuilt(session, name):
    before, _ = read_state(session)
    DAMAGES[name](database(session))
    damaged = database(session).read_bytes()
    after, notes = read_state(session)
    assert after == before
    assert database(session).with_name("lab.db.corrupt-1").read_bytes() == damaged
    assert "The store was damaged" in notes[0]
    assert "moved to .triton_magics/lab.db.corrupt-1" in notes[0]
    assert read_state(session) == (before, ())


def test_a_second_damaged_store_gets_the_next_number(session):
    for number in (1, 2):
        DAMAGES["no database"](database(session))
        assert f"corrupt-{number}." in read_state(session)[1][0]


def test_an_emptied_store_is_rebuilt(session):
    before, _ = read_state(session)
    database(session).write_bytes(b"")
    assert read_state(session)[0] == before


@pytest.mark.parametrize("target", ["the store's folder", "its file"])
def test_deleted_store_is_rebuilt_while_open(session, target):
    with open_workspace(session) as ws:
        before = visible_state(ws)
        if target == "its file":
            database(session).unlink()
        else:
            shutil.rmtree(database(session).parent)
        assert visible_state(ws) == before
        assert "deleted or replaced" in ws.notes[-1]
        write(ws, "v9", "after that")
        assert {finding.state for finding in ws.check()} == {"good"}
        after = visible_state(ws)
    assert read_state(session) == (after, ())


def test_store_replaced_by_another_process_is_reopened(session):
    with open_workspace(session) as ws:
        database(session).unlink()
        with open_workspace(session) as other:
            write(other, "v9", "by the other")
            write(ws, "v8", "by this one")
            assert visible_state(ws) == visible_state(other)
            assert {"v8", "v9"} <= {v.version for v in ws.versions("softmax")}


def test_moved_workspace_is_an_error_until_it_is_back(session):
    away = session.with_name("away")
    with open_workspace(session) as ws:
        before = visible_state(ws)
        session.rename(away)
        with pytest.raises(WorkspaceError, match="is missing. Restore it"):
            write(ws, "v9", "nowhere")
        with pytest.raises(WorkspaceError, match="is missing. Restore it"):
            ws.versions("softmax")
        assert not session.exists()
        away.rename(session)
        assert visible_state(ws) == before


def test_change_counter_changes_only_with_others_events(session):
    with open_workspace(session) as ws, open_workspace(session) as other:
        before = ws.change_counter()
        write(ws, "v8", "our own")
        visible_state(ws)
        assert ws.change_counter() == before
        write(other, "v9", "theirs")
        assert ws.change_counter() != before


def test_damage_deep_in_a_large_store_is_found_when_it_is_read(tmp_path):
    with open_workspace(tmp_path) as ws:
        for number in range(1, 5):
            write(ws, f"v{number}", "x" * 3_000_000)
        before = [s.sha256 for s in ws.attempts("softmax", "v2")]
    size = database(tmp_path).stat().st_size
    assert size > 12_000_000
    for at in range(4096 * 100, size - 4096 * 100, 4096):
        overwrite(database(tmp_path), at, b"\xff" * 8)
    with open_workspace(tmp_path) as ws:
        with pytest.raises(WorkspaceError, match=r"has been rebuilt .* Repeat the step"):
            ws.attempts("softmax", "v2")
        assert [s.sha256 for s in ws.attempts("softmax", "v2")] == before
        assert database(tmp_path).with_name("lab.db.corrupt-1").stat().st_size == size


def test_processes_rebuild_a_damaged_store_once(session):
    before, _ = read_state(session)
    DAMAGES["no database"](database(session))
    code = (
        "import sys; from pathlib import Path; from workspace_kit import open_workspace\n"
        "with open_workspace(Path(sys.argv[1])) as ws: print(ws.count('softmax'))\n"
    )
    crowd = [child(code, session) for _ in range(3)]
    assert [wait_for_output(p) for p in crowd] == ["4\n"] * 3
    assert read_state(session)[0] == before
    assert len(list((session / ".triton_magics").glob("*corrupt*"))) == 1


# ------------------------------------------------------------------------------------ schemas


def test_an_older_store_is_migrated(session):
    """A store of schema 1 has only the events."""
    before, _ = read_state(session)
    old = session.with_name("old")
    (old / ".triton_magics").mkdir(parents=True)
    with closing(sqlite3.connect(database(old), isolation_level=None)) as conn:
        MIGRATIONS[0][1](conn)
        conn.execute("CREATE TABLE migrations (number INTEGER PRIMARY KEY, name TEXT)")
        conn.execute("INSERT INTO migrations VALUES (1, 'create_events')")
        conn.execute("PRAGMA user_version = 1")
        conn.execute("ATTACH ? AS now", (str(database(session)),))
        conn.execute("INSERT INTO events SELECT * FROM now.events")
    assert read_state(old)[0] == before
    assert tables(old) == tables(session)
    assert (old / LOG).read_bytes() == (session / LOG).read_bytes()
    with closing(sqlite3.connect(database(old))) as conn:
        names = [row[0] for row in conn.execute("SELECT name FROM migrations ORDER BY number")]
    assert names == [step.name for step in MIGRATIONS]


def test_newer_store_is_refused_and_not_changed(session):
    with closing(sqlite3.connect(database(session))) as conn:
        conn.execute("PRAGMA user_version = 99")
    message = rf"\(schema 99; this one reads up to {len(MIGRATIONS)}\)"
    with pytest.raises(WorkspaceError, match=message):
        open_workspace(session)
    assert not list((session / ".triton_magics").glob("*corrupt*"))


# ----------------------------------------------------------------------- long histories


@pytest.mark.parametrize("n_events", [10_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_long_history_is_not_read_at_open(tmp_path, n_events, monkeypatch):
    with open_workspace(tmp_path) as ws:
        event = ws.record("softmax", "shown")
    with closing(sqlite3.connect(database(tmp_path))) as conn, conn:
        line = event.model_dump_json(exclude_none=True)
        conn.executemany(
            "INSERT INTO events VALUES (?, ?, 'softmax', 'shown', NULL, NULL, '', ?)",
            ((i, f"{i}", line.replace(event.uuid, f"{i}")) for i in range(2, n_events + 1)),
        )
        conn.execute("INSERT INTO unlogged SELECT op, seq FROM events WHERE seq > 1")
        conn.execute("UPDATE ops SET n_events = ?", (n_events,))
    with open_workspace(tmp_path):
        assert len(log_lines(tmp_path)) == n_events  # the log has caught up
    read = []
    parse = type(event).model_validate_json
    monkeypatch.setattr(
        type(event), "model_validate_json", lambda text: read.append(text) or parse(text)
    )
    with open_workspace(tmp_path) as ws:
        assert ws.count("softmax") == n_events
        assert read == []
        assert len(list(ws.events("softmax"))) == len(read) == n_events


# ------------------------------------------------------- damage that SQLite does not call damage


def change(path, *statements):
    with closing(sqlite3.connect(database(path))) as conn, conn:
        for statement in statements:
            conn.execute(statement)


QUIET_DAMAGES = {
    "text that is not UTF-8": "UPDATE events SET json = CAST(X'FFFE7B7D' AS TEXT) WHERE seq = 2",
    "an event that is no JSON": "UPDATE events SET json = substr(json, 3) WHERE seq = 2",
    "a missing table": "DROP TABLE ops",
    "a missing column": "ALTER TABLE versions DROP COLUMN technique",
    "a lost event": "DELETE FROM events WHERE seq = 1",
    "schema 0": "PRAGMA user_version = 0",
    "schema -5": "PRAGMA user_version = -5",
    "schema 2": "PRAGMA user_version = 2",
    "an altered source": (
        "UPDATE events SET json = replace(json, 'return x', 'return y') WHERE verb = 'written'"
    ),
}


def read_twice(path):
    """Return what a user sees who repeats a step that found damage."""
    with open_workspace(path) as ws:
        try:
            visible_state(ws)
            list(ws.events("softmax"))
        except WorkspaceError as error:
            assert "has been rebuilt" in str(error)  # noqa: PT017
        return visible_state(ws)


@pytest.mark.parametrize("name", QUIET_DAMAGES)
def test_damage_that_sqlite_does_not_see_is_healed(session, name):
    before, _ = read_state(session)
    change(session, QUIET_DAMAGES[name])
    if name == "a lost event":
        with open_workspace(session) as ws:
            ws.repair()
    assert read_twice(session) == before
    assert read_state(session) == (before, ())


@pytest.mark.parametrize("name", ["an event that is no JSON", "an altered source", "a lost event"])
def test_doctor_finds_damage_that_sqlite_does_not_see(session, name):
    read_state(session)
    change(session, QUIET_DAMAGES[name])
    with open_workspace(session) as ws:
        bad = [finding.subject for finding in ws.check() if finding.state != "good"]
        assert set(bad) & {"store", LOG}
        assert {finding.state for finding in ws.repair() if finding.subject != "store"} == {"good"}


def test_a_rebuilt_store_keeps_events_that_only_it_had(tmp_path):
    with open_workspace(tmp_path, history=False) as ws:
        for number in (1, 2, 3):
            write(ws, f"v{number}", number)
        before = ws.count("softmax")
    assert not (tmp_path / LOG).exists()
    change(tmp_path, "UPDATE events SET json = '{' WHERE seq = 1")
    with open_workspace(tmp_path, history=False) as ws:
        with pytest.raises(WorkspaceError, match="has been rebuilt"):
            list(ws.events("softmax"))
        assert {"v2", "v3"} <= {v.version[:2] for v in ws.versions("softmax")}
        assert ws.count("softmax") >= before - 1


def test_an_absurd_number_in_a_log_closes_no_workspace(session):
    before, _ = read_state(session)
    lines = (session / LOG).read_text().splitlines()
    record = json.loads(lines[0])
    for field, number in (("attempt", 10**30), ("attempt", -(10**30))):
        record |= {"uuid": f"{field}{number}"[:32], field: number}
        lines.append(json.dumps(record))
    (session / LOG).write_text("\n".join([*lines, ""]))
    after, notes = read_state(session)
    assert after == before
    assert "2 lines can't be read" in notes[0]
