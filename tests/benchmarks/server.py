"""Measure the server: cost of a request, /health beside a job, many jobs, remote notebooks.

    python tests/benchmarks/server.py [--jobs 1000] [--clients 8] [--json PATH]

The cost is that of `POST /v1/validate` over `Lab.validate`, with a scripted executor, so that
neither has a kernel to run. The jobs are `run` of relu on a real server in the interpreter; every
tenth kernel raises, ends its process, or does not end.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT))

import httpx  # noqa: E402
import uvicorn  # noqa: E402
from common import report  # noqa: E402

from tests.fake_executor import FakeExecutor  # noqa: E402
from tests.serve.serve_kit import TOKENS, ServerProcess, bearer, opened  # noqa: E402
from triton_magics.config import Settings  # noqa: E402
from triton_magics.execution.protocol import Progress  # noqa: E402
from triton_magics.lab import Lab  # noqa: E402
from triton_magics.serve.app import create_app  # noqa: E402
from triton_magics.serve.tokens import Tokens  # noqa: E402
from triton_magics.serve.web_server import PatientProtocol  # noqa: E402

SOFTMAX = "import triton\n\n\ndef triton_softmax(x):\n    return x\n"
RIGHT = """import torch
import triton
import triton.language as tl


@triton.jit
def relu(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(out_ptr + offsets, tl.maximum(x, 0.0), mask=offsets < n)


def triton_relu(x):
    out = torch.empty_like(x)
    relu[(1,)](x, out, x.numel(), BLOCK=1024)
    return out
"""
FAULTS = {
    "v2": "    raise ValueError('no')\n",
    "v3": "    import os; os._exit(3)\n",
    "v4": "    import os; os.kill(os.getpid(), 11)\n",
    "v5": "    while True:\n        pass\n",
}
EXPECTED = {
    "v1": "passed", "v2": "runtime_error", "v3": "crashed", "v4": "crashed", "v5": "timeout",
}  # fmt: skip


def p(values: list[float], percent: float) -> float:
    """Return a percentile, milliseconds."""
    return 1e3 * sorted(values)[min(int(len(values) * percent / 100), len(values) - 1)]


def timed(call: Callable[[], Any], n: int) -> list[float]:
    """Return the durations of n calls, seconds."""
    durations = []
    for _ in range(n):
        start = time.perf_counter()
        call()
        durations.append(time.perf_counter() - start)
    return durations


def cpu_ms(call: Callable[[], Any], n: int = 60) -> float:
    """Return the CPU time of a call in this process, milliseconds: no other load is in it."""
    start = time.process_time()
    for _ in range(n):
        call()
    return 1e3 * (time.process_time() - start) / n


def measure_cost(folder: Path, n: int = 200) -> dict[str, float]:
    """Return the cost of a request over the Lab's call, milliseconds."""
    with opened(folder, FakeExecutor(), mode="fastapi") as service:
        app = create_app(service, Tokens(TOKENS))
        config = uvicorn.Config(app, port=0, http=PatientProtocol, ws="none", log_config=None)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        body = {"op": "softmax", "version": "v1"}
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=bearer()) as client:
            by_lab, by_rest = [], []
            for _ in range(n):  # alternating, so that the machine's load is the same for both
                by_lab += timed(lambda: service.lab.validate("softmax", "v1"), 1)
                by_rest += timed(lambda: client.post("/v1/validate", json=body), 1)
            cpu = cpu_ms(lambda: client.post("/v1/validate", json=body))
            cpu -= cpu_ms(lambda: service.lab.validate("softmax", "v1"))
        server.should_exit = True
        thread.join(20)
    return {f"p{q}": p(by_rest, q) - p(by_lab, q) for q in (50, 95)} | {
        "lab_p95": p(by_lab, 95),
        "cpu": cpu,
    }


def measure_remote(folder: Path, n: int = 100) -> dict[str, float]:
    """Return the cost of a remote notebook's validation over a local one, milliseconds.

    Each has a scripted executor with the 18 steps of a quick plan.
    """
    steps = tuple(Progress(nonce="", stage=f"case {i}", done=i, total=18) for i in range(18))
    with opened(folder, FakeExecutor(), mode="fastapi") as service:
        config = uvicorn.Config(
            create_app(service, Tokens(TOKENS)), port=0, http=PatientProtocol, ws="none",
            log_config=None,
        )  # fmt: skip
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        os.environ["TRITON_MAGICS_TOKEN"] = TOKENS["ann"]
        far = Settings(engine=f"http://127.0.0.1:{port}")
        near = FakeExecutor()
        service.lab.session.jobs.executor.steps = near.steps = steps  # type: ignore[attr-defined]
        with (
            Lab(folder / "near", executor=near, settings=Settings()) as local,
            Lab(folder / "far", settings=far) as remote,
        ):
            by_lab: dict[Lab, list[float]] = {local: [], remote: []}
            for lab in by_lab:
                lab.op("softmax")
                lab.kernel("softmax", "v1", SOFTMAX)
                lab.validate("softmax", "v1", plan="quick")
            for _ in range(n):
                for lab, durations in by_lab.items():
                    validate = partial(lab.validate, "softmax", "v1", plan="quick")
                    durations.extend(timed(validate, 1))
            here, there = by_lab.values()
            cpu = cpu_ms(partial(remote.validate, "softmax", "v1", plan="quick"))
            cpu -= cpu_ms(partial(local.validate, "softmax", "v1", plan="quick"))
        server.should_exit = True
        thread.join(20)
    return {f"p{q}": p(there, q) - p(here, q) for q in (50, 95)} | {
        "lab_p95": p(here, 95),
        "cpu": cpu,
    }


def measure_health(server: ServerProcess) -> dict[str, float]:
    """Return the time of /health while a validation runs, milliseconds."""
    with server.client() as client:
        (answer,) = [client.post("/v1/validate?wait=false", json={"op": "relu", "version": "v1"})]
        durations = []
        while client.get(f"/job/{answer.json()['id']}").json()["state"] in (
            "queued", "running", "compiling", "validating",
        ):  # fmt: skip
            durations += timed(lambda: client.get("/health"), 5)
    return {"n": len(durations), "p50": p(durations, 50), "p95": p(durations, 95)}


def footprint(server: ServerProcess) -> dict[str, int]:
    """Return processes, descriptors and memory of a server."""
    pid = server.process.pid
    status = Path(f"/proc/{pid}/status").read_text().splitlines()
    rss = next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))
    return {
        "processes": len(descendants(pid)),
        "descriptors": len(os.listdir(f"/proc/{pid}/fd")),
        "rss_mib": rss // 1024,
    }


def descendants(pid: int) -> set[int]:
    """Return the pids of the processes below one."""
    children = Path(f"/proc/{pid}/task").glob("*/children")
    own: set[int] = set()
    for file in children:
        try:
            own |= {int(word) for word in file.read_text().split()}
        except OSError:
            continue
    return own | {below for child in own for below in descendants(child)}


def run_jobs(server: ServerProcess, n_jobs: int, n_clients: int) -> dict[str, Any]:
    """Return how jobs of several clients ended, and what is left of them."""
    marks: list[dict[str, int]] = []
    ids: list[str] = []
    wrong: Counter[str] = Counter()
    statuses: Counter[str] = Counter()

    def run(i: int) -> None:
        version = "v1" if i % 10 else f"v{2 + i // 10 % 4}"
        body: dict[str, Any] = {"op": "relu", "version": version, "shape": [8, 8]}
        body |= {"timeout": 2.0} if version == "v5" else {}
        headers = {**server.headers, "X-Session-Id": f"client-{i % n_clients}"}
        base = f"http://127.0.0.1:{server.port}"
        with httpx.Client(base_url=base, headers=headers, timeout=600) as client:
            answer = client.post("/v1/run", json=body)
        value = answer.json().get("value") or {}
        statuses[str(value.get("status"))] += 1
        if value.get("status") != EXPECTED[version]:
            wrong[f"{version} {answer.status_code} {value.get('status')}"] += 1
        ids.append(answer.json()["id"])
        if len(ids) in (n_jobs // 5, n_jobs):
            marks.append(footprint(server))

    start = time.perf_counter()
    with ThreadPoolExecutor(n_clients) as pool:
        list(pool.map(run, range(n_jobs)))
    seconds = time.perf_counter() - start
    with server.client() as client:
        ended = client.get("/stats").json()["jobs"]["ended"]
    time.sleep(3)
    return {
        "jobs": n_jobs,
        "distinct": len(set(ids)),
        "ended": sum(ended.values()),
        "statuses": dict(statuses),
        "other endings": dict(wrong),
        "jobs/s": n_jobs / seconds,
        "after a fifth": marks[0],
        "at the end": footprint(server),
    }


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--clients", type=int, default=8)
    words, _ = parser.parse_known_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = [{"what": "request over the Lab's call, ms", **measure_cost(folder / "cost")}]
        print(rows[0], flush=True)
        rows.append({"what": "remote notebook over a local one, ms"} | measure_remote(folder / "r"))
        print(rows[-1], flush=True)
        server = ServerProcess(folder)
        try:
            with server.client() as client:
                head = RIGHT.partition("def triton_relu")[0] + "def triton_relu(x):\n"
                sources = {"v1": RIGHT, **{v: head + text for v, text in FAULTS.items()}}
                for version, source in sources.items():
                    body = {"op": "relu", "version": version, "source": source, "compile": False}
                    client.post("/v1/kernel", json=body).raise_for_status()
            rows.append({"what": "/health during a job, ms", **measure_health(server)})
            print(rows[-1], flush=True)
            jobs = run_jobs(server, words.jobs, words.clients)
            print(jobs, flush=True)
        finally:
            server.close()
    figures = [
        {"what": r["what"], "p50": r["p50"], "p95": r["p95"], "cpu": r.get("cpu", "–")}
        for r in rows
    ]
    report("The server", figures, jobs=jobs)


if __name__ == "__main__":
    main()
