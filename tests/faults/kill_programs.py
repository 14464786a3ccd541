"""The programs of `kills.py`: each writes and validates versions until it is killed.

python tests/faults/kill_programs.py notebook FOLDER PORT FIRST
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

import httpx

from tests.faults.engine.fault_lab import RIGHT
from triton_magics.config import Settings
from triton_magics.errors import Interrupted, TritonMagicsError
from triton_magics.lab import Lab

OP = "relu"
ACTORS = {"notebook": "v1", "remote": "v2", "client": "v3"}  # the version that each writes
WRONG_LINE = "x + 1.0"
WRONG = RIGHT.replace("tl.maximum(x, 0.0)", WRONG_LINE)
WRONG_EVERY = 5
FINAL = ("completed", "failed", "cancelled", "timeout", "crashed")
TOKEN = "k" * 40


def source_of(name: str, number: int) -> tuple[str, bool]:
    """Return a version that no other call writes, and whether it is right."""
    is_right = number % WRONG_EVERY != 0
    return f"{RIGHT if is_right else WRONG}# {name} {number}\n", is_right


def note(file: Path, **facts: object) -> None:
    """Append a line in one write, so that a kill leaves all of it or nothing."""
    fd = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(fd, json.dumps(facts).encode() + b"\n")
    os.close(fd)


def work_in_a_lab(name: str, folder: Path, notes: Path, first: int, engine: str) -> None:
    """Write and validate without end; a refusal by the package is noted."""
    settings = Settings(device="interpreter", engine=engine, standbys=1)
    with Lab(folder, settings=settings) as lab:
        for number in range(first, first + 10**6):
            source, is_right = source_of(name, number)
            with noted_refusals(notes, name):
                written = lab.write(OP, ACTORS[name], source, compile=False).source
                note(notes, kind="written", attempt=written.attempt, name=name, number=number)
                seed = seed_of(name, number)
                verdict = lab.validate(OP, ACTORS[name], shapes=[(4, 4)], seed=seed, timeout=20)
                note(notes, kind="validated", seed=seed, right=is_right, status=verdict.status)


@contextmanager
def noted_refusals(notes: Path, name: str) -> Iterator[None]:
    """Note an error of the package or of the connection, and go on after it."""
    try:
        yield
    except (TritonMagicsError, Interrupted, httpx.HTTPError) as error:
        note(notes, kind="refused", name=name, error=type(error).__name__, text=str(error)[:500])
        time.sleep(0.2)


def work_as_a_client(name: str, url: str, notes: Path, first: int) -> None:
    """Do the same over REST; every second validation waits in its call."""
    headers = {"Authorization": f"Bearer {TOKEN}"}
    with httpx.Client(base_url=url, headers=headers, timeout=60) as http:
        for number in range(first, first + 10**6):
            source, is_right = source_of(name, number)
            with noted_refusals(notes, name):
                body = {"op": OP, "version": ACTORS[name], "source": source, "compile": False}
                answer = post(http, "/v1/kernel", body)
                attempt = answer["value"]["source"]["attempt"]
                note(notes, kind="written", attempt=attempt, name=name, number=number)
                seed = seed_of(name, number)
                body = {"op": OP, "version": ACTORS[name], "shapes": [[4, 4]], "seed": seed}
                body["timeout"] = 20
                job = post(http, f"/v1/validate{'' if number % 2 else '?wait=false'}", body)
                note(notes, kind="job", id=job["id"])
                while job["state"] not in FINAL:
                    job = http.get(f"/job/{job['id']}?wait=20").raise_for_status().json()
                if job["state"] == "completed":
                    status = job["value"]["status"]
                    note(notes, kind="validated", seed=seed, right=is_right, status=status)


def post(http: httpx.Client, path: str, body: dict[str, Any]) -> dict[str, Any]:
    """Return the answer; an error of the server is an error of the connection here."""
    answer: dict[str, Any] = http.post(path, json=body).raise_for_status().json()
    return answer


def seed_of(name: str, number: int) -> int:
    """Return a seed that no other validation has."""
    return (list(ACTORS).index(name) + 1) * 10**7 + number


def main(name: str, base: Path, port: str, first: int) -> None:
    """Be one of the programs."""
    url = f"http://127.0.0.1:{port}"
    if name == "client":
        work_as_a_client(name, url, base / "notes", first)
    else:
        os.environ["TRITON_MAGICS_TOKEN"] = TOKEN
        engine = url if name == "remote" else "local"
        work_in_a_lab(name, base / "workspace", base / "notes", first, engine)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3], int(sys.argv[4]))
