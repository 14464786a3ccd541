"""Drive a real server with every client: REST, the Python client, MCP, a remote notebook.

    python tests/benchmarks/server_suite.py [--jobs 200] [--torch-cuda] [--sandbox off]
        [--only TEXT] [--json PATH]

Each row is one check, with its time in seconds; the exit code is 1 where one fails. Without a GPU
the same checks run in the interpreter, and the times of kernels are left out.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT))

import httpx  # noqa: E402
import mcp_workflow  # noqa: E402
import server as many_jobs  # noqa: E402
from common import report  # noqa: E402

from tests.serve.guide_examples import ADD, CONTRACT, REFERENCE, evaluation, tensor  # noqa: E402
from tests.serve.serve_kit import ServerProcess  # noqa: E402
from triton_magics.client import AsyncClient, Client  # noqa: E402
from triton_magics.config import Settings  # noqa: E402
from triton_magics.lab import Lab  # noqa: E402

N_VALUES = 1000  # of the additions
CUDA_ADD = """
__global__ void add(const float* x_ptr, const float* y_ptr, float* out_ptr, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out_ptr[i] = x_ptr[i] + y_ptr[i];
}
"""
CUDA_CONTRACT = {
    "args": [arg for arg in CONTRACT["args"] if arg["name"] != "BLOCK"],
    "launch": {"grid": {"x": 4}, "block": {"x": 256}},
}
TORCH_CONTRACT = {
    "args": [tensor(name, init={"kind": "randn", "seed": 1}) for name in ("x", "y")]
}  # fmt: skip
TORCH_CUDA = """
import torch
from torch.utils.cpp_extension import load_inline
source = '''
__global__ void add(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}
torch::Tensor run(torch::Tensor x, torch::Tensor y) {
  auto out = torch::empty_like(x);
  add<<<(x.numel() + 255) / 256, 256>>>(
      x.data_ptr<float>(), y.data_ptr<float>(), out.data_ptr<float>(), x.numel());
  return out;
}
'''
built = load_inline("suite_add", "torch::Tensor run(torch::Tensor x, torch::Tensor y);", source,
                    functions=["run"])


class ModelNew(torch.nn.Module):
    def forward(self, x, y):
        return built.run(x, y)
"""
SLEEPS = "import time\n\n\ndef run(x, y):\n    time.sleep(600)\n    return x + y\n"
FAULTS = {
    "crashed": "import os\n\n\ndef run(x, y):\n    os.kill(os.getpid(), 11)\n",
    "timeout": SLEEPS,
    "failed": "def run(x, y):\n    return x - y\n",
    "compile_error": "def run(x, y)\n    return x + y\n",
}


class Checks:
    """Runs checks one after the other, and keeps what each of them found."""

    def __init__(self, only: str = "") -> None:
        self.rows: list[dict[str, Any]] = []
        self._only = only

    def run(self, name: str, check: Callable[[], Any]) -> None:
        """Run a check; what it returns is shown beside it."""
        if self._only not in name:
            return
        start = time.perf_counter()
        try:
            detail, ok = check(), True
        except Exception as error:  # noqa: BLE001 (a check that fails is a row)
            while isinstance(error, ExceptionGroup):
                error = error.exceptions[0]
            place = traceback.extract_tb(error.__traceback__)[-1]
            detail, ok = f"{type(error).__name__} line {place.lineno}: {error}"[:600], False
        row = {"check": name, "ok": ok, "s": time.perf_counter() - start, "detail": str(detail)}
        self.rows.append(row)
        print(f"{'ok  ' if ok else 'FAIL'} {row['s']:7.2f} s  {name}: {detail}", flush=True)


def kernel(source: str, kind: str, contract: Any = None, **metadata: Any) -> dict[str, Any]:
    """Return a kernel of a request."""
    own = {"source_code": source, "kernel_type": kind, "metadata": metadata}
    return {**own, **({"io": contract} if contract else {})}


def request(own: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return a request that judges a kernel by an addition in torch."""
    return {"kernel": own, "reference": kernel(REFERENCE, "torch"), **more}


class Suite:
    """The checks of one server.

    Args:
        server: a process of its own.
        checks: keeps the results.
    """

    def __init__(self, server: ServerProcess, checks: Checks) -> None:
        self.server, self.checks = server, checks
        self.url = f"http://127.0.0.1:{server.port}"
        self.token = server.headers["Authorization"].removeprefix("Bearer ")
        self.http = httpx.Client(base_url=self.url, headers=server.headers, timeout=900)
        self.has_gpu = self.is_confined = False

    # -------------------------------------------------------------------------------------- REST

    def check_health(self) -> str:
        until = time.monotonic() + 120
        while (health := self.http.get("/health").json())["status"] == "warming":
            assert time.monotonic() < until, health
            time.sleep(0.1)
        assert health["status"] == "ok", health
        return f"{health['device']}, {len(health['gpus'])} GPUs"

    def judge(self, path: str, body: dict[str, Any], status: str, code: int = 200) -> str:
        answer = self.http.post(path, json=body)
        value = answer.json()
        assert (answer.status_code, value.get("status")) == (code, status), answer.text[:600]
        own = value["kernel_exec_result"]
        if status == "passed":
            assert own["correctness"] is True, own
        if status == "passed" and self.has_gpu and path != "/validate":
            assert own["runtime"] > 0, own
            assert value["ref_runtime"] > 0, value
        times = f"{own['runtime']} ms, {value['speedup']}x" if own["runtime"] else "no times"
        return f"{status}, {times}"

    @property
    def right(self) -> str:
        """Status of a right kernel that is timed."""
        return "passed" if self.has_gpu else "no_gpu"

    def check_kinds(self, torch_cuda: bool) -> None:
        run = self.checks.run
        run("evaluate triton", lambda: self.judge("/evaluate", evaluation(), self.right))
        run("validate triton", lambda: self.judge("/validate", evaluation(), "passed"))
        both = {"ref_kernel": kernel(REFERENCE, "torch"), "custom_kernel": evaluation()["kernel"]}
        run("compare triton with torch", lambda: self.judge("/compare", both, self.right))
        wrong = evaluation(ADD.replace("x + y", "x - y"))
        run("evaluate a wrong triton", lambda: self.judge("/evaluate", wrong, "failed"))
        broken = evaluation(ADD.replace("tl.arange(0, BLOCK)", "tl.arange(0, BLOCK"))
        run("evaluate what does not compile",
            lambda: self.judge("/evaluate", broken, "compile_error"))  # fmt: skip
        torch_add = request(kernel(REFERENCE, "torch", TORCH_CONTRACT))
        run("evaluate torch", lambda: self.judge("/evaluate", torch_add, self.right))
        own = kernel(REFERENCE.replace("add", "run"), "multi_kernel", TORCH_CONTRACT,
                     entry_point="run")  # fmt: skip
        run("evaluate multi_kernel", lambda: self.judge("/evaluate", request(own), self.right))
        cuda = request(kernel(CUDA_ADD, "cuda", CUDA_CONTRACT))
        run("evaluate cuda", lambda: self.judge("/evaluate", cuda, self.right))
        if torch_cuda:
            built = request(kernel(TORCH_CUDA, "torch_cuda", TORCH_CONTRACT), timeout=300)
            run("evaluate torch_cuda", lambda: self.judge("/evaluate", built, self.right))
        metrics = evaluation(enable_device_metrics=True)
        run("evaluate with metrics of ncu", lambda: self.check_metrics(metrics))

    def check_metrics(self, body: dict[str, Any]) -> str:
        value = self.http.post("/evaluate", json=body).json()
        metrics = value["kernel_exec_result"]["metadata"].get("device_metrics")
        assert metrics is not None or not self.has_gpu, value["kernel_exec_result"]
        if self.is_confined and self.has_gpu:  # Nsight Compute can't observe a version there
            assert metrics["status"] == "unavailable", metrics
            assert value["kernel_exec_result"]["correctness"], value
        return str(metrics)[:120]

    def check_faults(self) -> None:
        for status, source in FAULTS.items():
            own = kernel(source, "multi_kernel", TORCH_CONTRACT, entry_point="run")
            code = 500 if status in ("crashed", "timeout") else 200
            body = request(own, timeout=8)
            self.checks.run(
                f"a kernel that ends as {status}",
                lambda body=body, status=status, code=code: self.judge(
                    "/validate", body, status, code
                ),
            )
            self.checks.run("the next job", lambda: self.judge("/validate", evaluation(), "passed"))

    def check_cancel(self) -> str:
        """Cancel a job that runs; return the time until it has ended, and until another has run."""
        own = kernel(SLEEPS, "multi_kernel", TORCH_CONTRACT, entry_point="run")
        job = self.http.post("/validate?wait=false", json=request(own, timeout=60)).json()
        job_id = job.get("id") or job["job_id"]
        while self.http.get(f"/job/{job_id}").json()["state"] != "validating":
            time.sleep(0.02)
        time.sleep(1.0)
        start = time.perf_counter()
        self.http.delete(f"/job/{job_id}").raise_for_status()
        state = self.http.get(f"/job/{job_id}?wait=20").json()["state"]
        ended = time.perf_counter() - start
        assert state == "cancelled", state
        self.judge("/validate", evaluation(), "passed")
        assert ended < 1.0, f"{ended:.2f} s"
        return f"ended in {ended:.2f} s, another job in {time.perf_counter() - start:.2f} s"

    def check_stream(self) -> str:
        job = self.http.post("/validate?wait=false", json=evaluation()).json()
        with Client(self.url, self.token) as client:
            kinds = [event.kind for event in client.stream(job.get("id") or job["job_id"])]
        assert kinds[-1] == "end", kinds
        assert "partial" in kinds, kinds
        return f"{len(kinds)} events"

    def check_refusals(self) -> str:
        body = evaluation(num_trials=0, speed="fast")
        faults = self.http.post("/evaluate", json=body).json()["validation_errors"]
        assert {fault["field"] for fault in faults} == {"num_trials", "speed"}, faults
        assert httpx.get(f"{self.url}/stats").status_code == 401
        assert self.http.post("/v1/best", json={"op": "nothing"}).status_code == 404
        assert self.http.get("/job/none").status_code == 404
        return "422, 401, 404"

    # ------------------------------------------------------------------------------------ clients

    def check_python_clients(self) -> str:
        body = evaluation()
        with Client(self.url, self.token) as client:
            value = client.evaluate(body["kernel"], body["reference"])
            assert value.kernel_exec_result.correctness is True, value

        async def both() -> list[Any]:
            async with AsyncClient(self.url, self.token) as client:
                own, reference = body["kernel"], body["reference"]
                return await asyncio.gather(*(client.validate(own, reference) for _ in range(2)))

        assert [v.status for v in asyncio.run(both())] == ["passed", "passed"]
        return "sync, and two at once by async"

    # ---------------------------------------------------------------------------------------- MCP

    def check_mcp(self, mode: str, op: str) -> str:
        return str(asyncio.run(self._develop(mode, op)))

    def check_two_sessions(self) -> str:
        async def both() -> list[str]:
            ops = (("auto", "log_softmax"), ("legacy", "softmax_b"))
            return await asyncio.gather(*(self._develop(*each) for each in ops))

        return str(asyncio.run(both()))

    async def _develop(self, mode: str, op: str) -> str:
        async with mcp_workflow.http_agent(self.url, self.server.headers, mode) as agent:
            sources = mcp_workflow.sources_of(op)
            return await mcp_workflow.develop(agent, op, sources, has_gpu=self.has_gpu)

    def check_stats(self) -> str:
        jobs = self.http.get("/stats").json()["jobs"]["ended"]
        assert "triton_magics" in self.http.get("/stats?format=prometheus").text
        return str(jobs)

    def close(self) -> None:
        self.http.close()


@contextmanager
def running(folder: Path, *options: str) -> Iterator[ServerProcess]:
    """Give a server with REST and MCP."""
    server = ServerProcess(folder, "--mode", "both", *options)
    try:
        yield server
    finally:
        server.process.terminate()
        server.process_wait(40)
        server.close()


def measure_notebook(server: ServerProcess, folder: Path, n: int = 9) -> str:
    """Return the time of a quick validation by a local and a remote notebook, milliseconds."""
    os.environ["TRITON_MAGICS_TOKEN"] = server.headers["Authorization"].split()[1]
    url = f"http://127.0.0.1:{server.port}"
    with (
        Lab(folder / "local", settings=Settings()) as local,
        Lab(folder / "remote", settings=Settings(engine=url)) as remote,
    ):
        for lab in (local, remote):
            lab.op("softmax")
            lab.kernel("softmax", "v1", mcp_workflow.SOFTMAX)
            lab.validate("softmax", "v1", plan="quick")
        times: dict[str, list[float]] = {"local": [], "remote": []}
        for i in range(n):
            for name, lab in (("local", local), ("remote", remote)):
                start = time.perf_counter()
                value = lab.validate("softmax", "v1", plan="quick", seed=i)
                times[name].append(1e3 * (time.perf_counter() - start))
                assert value.passed, value
    medians = {name: statistics.median(each) for name, each in times.items()}
    pairs = zip(times["remote"], times["local"], strict=True)
    more = statistics.median(far - near for far, near in pairs)
    assert more < 50, times
    return f"local {medians['local']:.0f} ms, remote {medians['remote']:.0f} ms, {more:+.0f} ms"


def measure_jobs(server: ServerProcess, n_jobs: int) -> str:
    """Return how many jobs of 8 clients ended, a tenth of them faulty."""
    with server.client() as client:
        head = many_jobs.RIGHT.partition("def triton_relu")[0] + "def triton_relu(x):\n"
        sources = {"v1": many_jobs.RIGHT} | {v: head + t for v, t in many_jobs.FAULTS.items()}
        for version, source in sources.items():
            body = {"op": "relu", "version": version, "source": source, "compile": False}
            client.post("/v1/kernel", json=body).raise_for_status()
    ending = many_jobs.run_jobs(server, n_jobs, 8)
    assert ending["distinct"] == n_jobs, ending
    assert not ending["other endings"], ending
    return str({k: v for k, v in ending.items() if k not in ("distinct", "other endings")})


def main() -> int:
    """Run the suite; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=200, help="of 8 clients; 0: none")
    parser.add_argument("--torch-cuda", action="store_true", help="build an extension; needs nvcc")
    parser.add_argument("--only", default="", help="checks whose name has this text")
    parser.add_argument("--sandbox", choices=("on", "auto", "off"), help="of the server's versions")
    words, _ = parser.parse_known_args()
    checks = Checks(words.only)
    options = ("--sandbox", words.sandbox) if words.sandbox else ()
    with tempfile.TemporaryDirectory() as name, running(Path(name), *options) as server:
        suite = Suite(server, checks)
        checks.run("/health, with warm workers", suite.check_health)
        sandbox = server._line("sandbox")
        suite.is_confined = sandbox.startswith("sandbox on")
        checks.run("the sandbox", lambda: sandbox)
        suite.has_gpu = bool(suite.http.get("/health").json()["gpus"])
        suite.check_kinds(words.torch_cuda)
        suite.check_faults()
        checks.run("cancel a job that runs", suite.check_cancel)
        checks.run("server-sent events", suite.check_stream)
        checks.run("refusals", suite.check_refusals)
        checks.run("Python clients", suite.check_python_clients)
        checks.run("MCP, protocol of 2025-11", lambda: suite.check_mcp("legacy", "softmax"))
        checks.run("MCP, two sessions at once", suite.check_two_sessions)
        checks.run(
            "a remote notebook's quick validation",
            lambda: measure_notebook(server, Path(name)),
        )
        if words.jobs:
            checks.run(f"{words.jobs} jobs of 8 clients", lambda: measure_jobs(server, words.jobs))
        checks.run("/stats", suite.check_stats)
        suite.close()
    report("Clients on a real server", checks.rows)
    return 0 if all(row["ok"] for row in checks.rows) else 1


if __name__ == "__main__":
    sys.exit(main())
