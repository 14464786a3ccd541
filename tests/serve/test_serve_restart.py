"""A real server that is killed or stopped while jobs run and wait, and the one after it."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from tests.serve.serve_kit import ServerProcess

pytestmark = pytest.mark.slow
HANGS = (
    "def triton_relu(x):\n    import time\n    print('begun', flush=True)\n    time.sleep(600)\n"
)
WAITS = HANGS.replace("600)", "4)\n    return x")


def children(pid: int) -> set[int]:
    """Return the pids of all processes below one."""
    own: set[int] = set()
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        own |= {int(word) for word in file.read_text().split()}
    return own | {below for child in own for below in children(child)}


def start_jobs(server: ServerProcess, source: str) -> list[str]:
    """Write a version and submit it three times; return the ids once the first one runs."""
    with server.client() as client:
        kernel = {"op": "relu", "version": "v1", "source": source, "compile": False}
        client.post("/v1/kernel", json=kernel).raise_for_status()
        body = {"op": "relu", "version": "v1", "timeout": 500.0}
        ids = [client.post("/v1/run?wait=false", json=body).json()["id"] for _ in range(3)]
        until = time.monotonic() + 60
        while "begun" not in client.get(f"/job/{ids[0]}").json()["output"]:
            assert time.monotonic() < until
    return ids


def test_a_killed_server_leaves_records_and_no_process(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path)
    ids = start_jobs(server, HANGS)
    below = children(server.process.pid)
    assert len(below) > 2
    server.close()  # SIGKILL
    until = time.monotonic() + 20
    while any(Path(f"/proc/{pid}").exists() for pid in below) and time.monotonic() < until:
        server.process_wait(0.01)
        os.sched_yield()
    assert not [pid for pid in below if Path(f"/proc/{pid}").exists()]
    after = ServerProcess(tmp_path)
    try:
        with after.client() as client:
            jobs = [client.get(f"/job/{name}").json() for name in ids]
            assert [job["state"] for job in jobs] == ["failed"] * 3
            assert {job["fault"]["error"] for job in jobs} == {"ServerRestarted"}
            again = client.post("/v1/status", json={})
            assert again.status_code == 200
    finally:
        after.close()


def test_sigterm_lets_the_running_job_end(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path)
    ids = start_jobs(server, WAITS)
    server.process.send_signal(signal.SIGTERM)
    assert server.process_wait(60) == 0
    ends = {r["job"]: r["state"] for r in server.records() if r["message"] == "job ended"}
    assert [ends[name] for name in ids] == ["completed", "cancelled", "cancelled"]
    server.close()


def test_cancelled_jobs_free_the_device(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path)
    try:
        ids = start_jobs(server, HANGS)
        with server.client() as client:
            for name in reversed(ids):
                client.delete(f"/job/{name}")
            jobs = [client.get(f"/job/{name}?wait=20").json() for name in ids]
            assert [job["state"] for job in jobs] == ["cancelled"] * 3
            right = {"op": "relu", "version": "v2", "source": WAITS.replace("4)", "0)")}
            client.post("/v1/kernel", json={**right, "compile": False}).raise_for_status()
            answer = client.post("/v1/run", json={"op": "relu", "version": "v2"})
            assert answer.json()["state"] == "completed"
    finally:
        server.close()
